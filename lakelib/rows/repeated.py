"""Pure. Whether a key comes more than once."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakelib.rows.buffers import fixed_values, is_long_type
from lakelib.rows.merge import repeated_keys


def have_repeated(keys: Sequence[Sequence[pa.Array]]) -> bool:
    """Of key columns, each in parts."""
    if len(keys) == 1 and all(is_long_type(part.type) and not part.null_count for part in keys[0]):
        numbers = np.sort(np.concatenate([fixed_values(part, "<i8") for part in keys[0]]))
        return bool((numbers[1:] == numbers[:-1]).any())
    return bool(len(repeated_keys(keys)[0]))
