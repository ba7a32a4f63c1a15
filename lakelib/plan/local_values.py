"""Pure. All that is translated of Spark SQL's expressions. Each of it was tried against Spark, value by value; all else
takes Spark."""

from lakelib.plan.local_functions import FUNCTIONS
from lakelib.plan.local_scalars import SCALARS
from lakelib.plan.local_translator import Known

TRANSLATED: Known = {**SCALARS, **FUNCTIONS}
