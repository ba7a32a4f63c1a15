import pickle
from pathlib import Path

import pytest

from lakelib.errors import InvalidInputError
from lakelib.settings import Settings, StorageSettings, load_settings

AWS_KEYS = {"AWS_ACCESS_KEY_ID": "aws", "AWS_SECRET_ACCESS_KEY": "aws-secret", "AWS_SESSION_TOKEN": "aws-token"}
LAKE_KEYS = {"LAKE_S3_ACCESS_KEY_ID": "lake", "LAKE_S3_SECRET_ACCESS_KEY": "lake-secret"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "lake.properties"


def keys_of(settings: Settings) -> tuple[str | None, str | None, str | None]:
    storage = settings.storage
    return storage.s3_access_key, storage.s3_secret_key, storage.s3_session_token


def test_with_nothing_set_everything_is_below_the_working_directory() -> None:
    settings = load_settings(environ={})
    assert settings == Settings(warehouse="./.lake/warehouse", catalog=None, embedded_catalog=None)
    assert settings.storage == StorageSettings()


def test_arguments_hide_the_environment_and_the_environment_hides_the_file(home: Path) -> None:
    home.write_text("lake.warehouse=s3://file/w\nlake.s3.region=file-1\nlake.s3.endpoint=http://file:1\n")
    environ = {"LAKE_HOME": str(home), "LAKE_WAREHOUSE": "s3://environment/w", "LAKE_S3_REGION": "environment-1"}
    settings = load_settings(warehouse="s3://argument/w", environ=environ)
    assert settings.warehouse == "s3://argument/w"
    assert settings.storage == StorageSettings(s3_region="environment-1", s3_endpoint="http://file:1")


def test_names_of_our_own_come_before_the_standard_ones() -> None:
    environ = {
        "LAKE_S3_ENDPOINT": "http://lake:1",
        "AWS_ENDPOINT_URL_S3": "http://aws-s3:1",
        "AWS_ENDPOINT_URL": "http://aws:1",
        "AWS_REGION": "first-1",
        "AWS_DEFAULT_REGION": "second-1",
        "AWS_PROFILE": "profile",
    }
    storage = load_settings(environ=environ).storage
    assert (storage.s3_endpoint, storage.s3_region, storage.s3_profile) == ("http://lake:1", "first-1", "profile")
    del environ["LAKE_S3_ENDPOINT"], environ["AWS_REGION"]
    storage = load_settings(environ=environ).storage
    assert (storage.s3_endpoint, storage.s3_region) == ("http://aws-s3:1", "second-1")


def test_credentials_are_never_mixed_from_two_sources(home: Path) -> None:
    home.write_text("lake.s3.access_key=file\nlake.s3.secret_key=file-secret\n")
    in_file = {"LAKE_HOME": str(home)}
    assert keys_of(load_settings(environ=in_file)) == ("file", "file-secret", None)
    assert keys_of(load_settings(environ=in_file | AWS_KEYS)) == ("aws", "aws-secret", "aws-token")
    assert keys_of(load_settings(environ=in_file | AWS_KEYS | LAKE_KEYS)) == ("lake", "lake-secret", None)
    given = load_settings(environ=AWS_KEYS, s3_access_key="mine", s3_secret_key="my-secret")
    assert keys_of(given) == ("mine", "my-secret", None)


@pytest.mark.parametrize("as_folder", [True, False])
def test_lake_home_names_the_file_or_its_folder(home: Path, as_folder: bool) -> None:
    home.write_text("  # our lake\n\nlake.warehouse = s3://b/w # not a comment\nspark.master=local\n")
    settings = load_settings(environ={"LAKE_HOME": str(home.parent if as_folder else home)})
    assert settings.warehouse == "s3://b/w # not a comment"


@pytest.mark.parametrize("lines", ["fs.defaultFS=s3://new\nfs.default.name=s3://old", "fs.default.name=s3://new"])
def test_the_default_file_system_has_an_older_name(home: Path, lines: str) -> None:
    home.write_text(lines)
    assert load_settings(environ={"LAKE_HOME": str(home)}).storage.default_fs == "s3://new"


def test_user_name_and_password_of_the_file_go_into_its_url(home: Path) -> None:
    home.write_text(
        "lake.pg.url=jdbc:postgresql://db:5432/lake?ssl=true\nlake.pg.username=a@b\nlake.pg.password=p/w=1:\n"
    )
    settings = load_settings(environ={"LAKE_HOME": str(home)})
    assert settings.catalog == "postgresql://a%40b:p%2Fw%3D1%3A@db:5432/lake?ssl=true"
    assert (
        load_settings(environ={"LAKE_HOME": str(home)}, catalog="postgresql://other/db").catalog
        == "postgresql://other/db"
    )


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:p@h:5432/db",
        "postgres://h/db",
        "postgresql:///db?host=/tmp/pg",
        "postgresql://postgres:@/postgres?host=/tmp/x",
        "postgresql://a:1,b:2/db",
        "postgresql://[::1]:5432/db",
        "postgresql://u:p?w@h/db",
        "postgresql://u:@/db?host=/home/ann@work/.lake/catalog",
        "postgresql://h/db?password=p@w",
        "postgresql://u:p:w@h/db",
        "postgresql://u:p%2Fw%40@h/d%2Fb?user=a%40b",
    ],
)
def test_urls_of_postgresql_are_accepted(url: str) -> None:
    assert load_settings(catalog=url, environ={}).catalog == url


def test_an_empty_value_counts_as_not_set(home: Path) -> None:
    home.write_text("lake.warehouse=\nlake.s3.region=file-1\n")
    settings = load_settings(catalog="", environ={"LAKE_HOME": str(home), "LAKE_S3_REGION": "", "LAKE_WAREHOUSE": ""})
    assert settings == Settings(storage=StorageSettings(s3_region="file-1"))


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        ({"LAKE_CATALOG": "mysql://h/db"}, "LAKE_CATALOG"),
        ({"LAKE_CATALOG": "/some/path"}, "LAKE_CATALOG"),
        ({"LAKE_CATALOG": "postgresql://h:port/db"}, "LAKE_CATALOG"),
        ({"LAKE_CATALOG": "postgresql://h:70000/db"}, "LAKE_CATALOG"),
        ({"LAKE_WAREHOUSE": "ftp://h/w"}, "LAKE_WAREHOUSE"),
        ({"LAKE_WAREHOUSE": "s3:///w"}, "LAKE_WAREHOUSE"),
        ({"LAKE_WAREHOUSE": "s3://key:hidden@b/w"}, "LAKE_WAREHOUSE"),
        ({"LAKE_WAREHOUSE": "s3://key:hidden/more@b/w"}, "LAKE_WAREHOUSE"),
        ({"LAKE_WAREHOUSE": "hdfs://user:hidden@h/w"}, "LAKE_WAREHOUSE"),
        ({"LAKE_S3_ENDPOINT": "http://key:hidden@h:1"}, "LAKE_S3_ENDPOINT"),
        ({"LAKE_CATALOG": "postgresql://u:hidden/x@h/db"}, "LAKE_CATALOG"),
        ({"LAKE_CATALOG": "postgresql://u:1/hidden@h/db"}, "LAKE_CATALOG"),
        ({"LAKE_CATALOG": "postgresql://u:x@hidden@h/db"}, "LAKE_CATALOG"),
        ({"LAKE_CATALOG": "postgresql://u:x@y/z?user=hidden@h/db"}, "LAKE_CATALOG"),
        ({"LAKE_CATALOG": "postgresql://u:1/x?host=hidden@h/db"}, "LAKE_CATALOG"),
        ({"LAKE_DEFAULT_FS": "/path"}, "LAKE_DEFAULT_FS"),
        ({"LAKE_DEFAULT_FS": "viewfs://x/"}, "LAKE_DEFAULT_FS"),
        ({"AWS_ENDPOINT_URL": "localhost:9000"}, "AWS_ENDPOINT_URL"),
        ({"LAKE_S3_ENDPOINT": "http://h:port"}, "LAKE_S3_ENDPOINT"),
        ({"LAKE_S3_ACCESS_KEY_ID": "key"}, "LAKE_S3_ACCESS_KEY_ID"),
        ({"AWS_SECRET_ACCESS_KEY": "hidden"}, "AWS_SECRET_ACCESS_KEY"),
        ({"LAKE_HOME": "/no/such/file"}, "/no/such/file"),
    ],
)
def test_a_wrong_variable_is_named(environ: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidInputError, match=named) as raised:
        load_settings(environ=environ)
    assert raised.value.remedy
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("lake.pg.uri=x", "Unknown setting 'lake.pg.uri'"),
        ("lake.warehouse=ftp://h/w", "unknown scheme 'ftp'"),
        ("lake.warehouse", "There is no '='"),
        ("lake.pg.url=jdbc:mysql://h/db", "not the URL of a PostgreSQL database"),
        ("lake.pg.password=hidden", "without lake.pg.url"),
        ("lake.s3.secret_key=hidden", "the access key is missing"),
        ("lake.pg.password hidden=x", "Unknown setting 'lake.pg.password'"),
        ("lake.pg.password:hidden=", "Unknown setting 'lake.pg.password'"),
    ],
)
def test_a_wrong_line_is_named(home: Path, line: str, said: str) -> None:
    home.write_text(f"# first\n{line}\n")
    with pytest.raises(InvalidInputError) as raised:
        load_settings(environ={"LAKE_HOME": str(home)})
    assert said in str(raised.value)
    assert f"file {home} line 2" in str(raised.value)
    assert "hidden" not in str(raised.value)


def test_a_wrong_argument_is_named() -> None:
    with pytest.raises(InvalidInputError, match="argument warehouse"):
        load_settings(warehouse="ftp://h/w", environ={})
    with pytest.raises(InvalidInputError, match="Unknown setting 's3_endpont', given as an argument"):
        load_settings(environ={}, s3_endpont="http://h:1")


@pytest.mark.parametrize("name", ["warehouse", "catalog", "s3_secret_key"])
def test_an_argument_that_is_no_text_is_named_without_its_value(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"argument {name}, is of type int") as raised:
        load_settings(environ={}, **{name: 987654})  # type: ignore[arg-type]
    assert "987654" not in str(raised.value)


def test_the_warehouse_may_be_a_path() -> None:
    assert load_settings(warehouse=Path("/data/lake"), environ={}).warehouse == "/data/lake"


def test_a_file_that_is_not_text_is_named(home: Path) -> None:
    home.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInputError, match=r"lake\.properties.*LAKE_HOME"):
        load_settings(environ={"LAKE_HOME": str(home)})


def test_secrets_are_in_no_repr() -> None:
    settings = load_settings(catalog="postgresql://u:hidden@h/db", environ={**LAKE_KEYS, **AWS_KEYS})
    aws = load_settings(environ={**AWS_KEYS, "AWS_ACCESS_KEY_ID": "aws-access"})
    assert not any(secret in f"{settings}{aws}" for secret in ("hidden", "lake-secret", "aws-"))


def test_settings_travel_by_pickle() -> None:
    settings = load_settings(catalog="postgresql://h/db", environ=AWS_KEYS)
    assert pickle.loads(pickle.dumps(settings)) == settings


@pytest.mark.parametrize("wrong", ["s3://b/p\n", "\ts3://b/p", "s3://b/p\x7f", "s3://b/p\udcff"])
@pytest.mark.parametrize(
    ("setting", "variable"), [("warehouse", "LAKE_WAREHOUSE"), ("s3_secret_key", "LAKE_S3_SECRET_ACCESS_KEY")]
)
def test_what_came_along_by_accident_is_named_without_its_value(setting: str, variable: str, wrong: str) -> None:
    environ = {"LAKE_S3_ACCESS_KEY_ID": "lake", variable: wrong}
    with pytest.raises(
        InvalidInputError, match=f"^Setting {setting}, from environment variable {variable}, "
    ) as caught:
        load_settings(environ=environ)
    assert caught.value.kind == "invalid_setting"
    assert "b/p" not in str(caught.value)


def test_the_timeout_of_a_store_is_a_number_of_seconds_from_wherever_it_comes() -> None:
    given = [
        load_settings(environ={}, s3_timeout_seconds=30),
        load_settings(environ={}, s3_timeout_seconds="30"),
        load_settings(environ={"LAKE_S3_TIMEOUT_SECONDS": "30"}),
    ]

    assert [settings.storage.s3_timeout_seconds for settings in given] == [30.0] * 3
    assert load_settings(environ={}).storage.s3_timeout_seconds is None


@pytest.mark.parametrize("wrong", ["soon", "0", "-1", "nan", "inf", "1e9"])
def test_a_timeout_that_is_none_is_refused_naming_where_it_comes_from(wrong: str) -> None:
    with pytest.raises(InvalidInputError, match="LAKE_S3_TIMEOUT_SECONDS"):
        load_settings(environ={"LAKE_S3_TIMEOUT_SECONDS": wrong})
