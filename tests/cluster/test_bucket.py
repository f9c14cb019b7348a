"""Files in a bucket of a real S3 server on this machine."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tlstd
from tests.cluster.logs import SHORT, ask, in_files
from tests.cluster.test_evaluate import FEW
from tlstd.cluster.log_shard import LogFile
from tlstd.errors import InvalidInputError
from tlstd.evaluation.report import Report
from tlstd.logs.log import Log
from tlstd.page import write_page

SECRET = "a-very-secret-key"


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, str], Any]]:
    """Options for polars and a client, of a server with one bucket that holds the log in four files."""
    boto3: Any = pytest.importorskip("boto3")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    keys = {"aws_access_key_id": "someone-known", "aws_secret_access_key": SECRET}
    client = boto3.client("s3", endpoint_url=url, region_name="us-east-1", **keys)
    client.create_bucket(Bucket="logs")
    folder = tmp_path_factory.mktemp("logs")
    in_files(SHORT, folder, 4)
    for path in sorted(folder.iterdir()):
        client.upload_file(str(path), "logs", f"walk/{path.name}")
    yield {**keys, "aws_endpoint_url": url, "aws_region": "us-east-1", "aws_allow_http": "true"}, client
    server.stop()


def test_as_from_files(bucket: tuple[dict[str, str], Any], tmp_path: Path) -> None:
    """A pattern, a folder, single addresses: the same answer as from the frame."""
    storage, _ = bucket
    whole = tlstd.evaluate(SHORT, gamma=0.9, estimators=FEW)
    progress: list[str] = []
    found = ask(
        "s3://logs/walk/*.parquet",
        estimators=FEW,
        storage=storage,
        report=lambda text, share: progress.append(text),
    )
    assert found.value == whole.value
    assert len(Log.from_frame("s3://logs/walk", storage=storage)) == SHORT.height
    part = Log.from_frame(["s3://logs/walk/part-1.parquet", "s3://logs/walk/part-2.parquet"], storage=storage)
    assert 0 < len(part) < SHORT.height
    write_page(found, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not any(SECRET in text for text in [*shown(found), *progress, page])


def shown(found: Report) -> list[str]:
    """Everything that an answer shows."""
    return [str(found), found.to_json(), repr(found), repr(found.model)]


def said(error: BaseException) -> str:
    """Everything that a traceback shows, with what an error was raised from."""
    found = traceback.TracebackException.from_exception(error, capture_locals=False)
    return "".join(found.format(chain=True)) + repr(error.args)


def test_what_goes_wrong(bucket: tuple[dict[str, str], Any], tmp_path: Path) -> None:
    """An object that disappears, a pattern of nothing, a wrong address: named, without secrets."""
    storage, client = bucket
    body = client.get_object(Bucket="logs", Key="walk/part-2.parquet")["Body"].read()
    names = [f"s3://logs/walk/part-{i}.parquet" for i in range(4)]
    client.delete_object(Bucket="logs", Key="walk/part-2.parquet")
    try:
        with pytest.raises(InvalidInputError, match=r"part-2.parquet cannot be read") as error:
            ask(names, estimators=FEW, storage=storage)
        assert SECRET not in said(error.value)
        left = ask(names, estimators=FEW, storage=storage, on_error="skip")
        assert any("part-2.parquet" in note for note in left.notes)
        file = LogFile(names[2], storage=storage)  # as a worker finds it that has to read it again
        with pytest.raises(InvalidInputError, match=r"part-2.parquet cannot be read") as error:
            file().joined_summary()
        assert SECRET not in said(error.value) + repr(file)
    finally:
        client.put_object(Bucket="logs", Key="walk/part-2.parquet", Body=body)
    for address in ("s3://logs/nothing/*.parquet", "s3://no-such-bucket/*.parquet"):
        with pytest.raises(InvalidInputError, match="cannot be read") as error:
            ask(address, storage=storage)
        assert SECRET not in said(error.value)
