"""Who may speak at the host's socket."""

import asyncio
import json

import pytest

from wer.sandboxing.rendezvous import SOCKET, Rendezvous


@pytest.fixture
async def meeting():
    opened = await Rendezvous.open(shared=False)
    yield opened
    await opened.close()


async def say(meeting, line):
    reader, writer = await asyncio.open_unix_connection(str(meeting.folder / SOCKET))
    writer.write(line)
    return reader, writer


async def turned_away(reader, writer):
    try:
        return await asyncio.wait_for(reader.read(), 5) == b""
    except ConnectionError:
        return True
    finally:
        writer.close()


@pytest.mark.parametrize(
    "line", [b'{"key": "guess"}\n', b"{}\n", b"[]\n", b"no json\n", b"\n", b"x" * 10_000, b'{"key": null}\n']
)
async def test_a_caller_without_an_expected_key_is_turned_away(meeting, line):
    meeting.expect()

    assert await turned_away(*await say(meeting, line))


async def test_a_key_opens_once(meeting):
    key, promise = meeting.expect()
    hello = json.dumps({"key": key}).encode() + b"\n"
    _, first = await say(meeting, hello)
    caller = await promise

    assert await turned_away(*await say(meeting, hello))
    assert caller.connection.open
    caller.connection.hang_up()
    first.close()


async def test_words_said_together_with_the_key_are_not_lost(meeting):
    key, promise = meeting.expect()
    _, writer = await say(meeting, json.dumps({"key": key}).encode() + b'\n{"ready": true}\n')
    caller = await promise
    await asyncio.sleep(0.05)
    heard = []

    caller.connection.trust(heard.append, lambda problem: None)

    assert heard == [{"ready": True}]
    caller.connection.hang_up()
    writer.close()


async def test_a_caller_who_left_before_being_trusted_is_reported_lost(meeting):
    key, promise = meeting.expect()
    _, writer = await say(meeting, json.dumps({"key": key}).encode() + b"\n")
    caller = await promise
    writer.close()
    await asyncio.sleep(0.1)
    lost = []

    caller.connection.trust(lambda message: None, lost.append)

    assert lost == [""]


async def test_only_the_owner_may_enter_the_folder_unless_it_is_shared(meeting):
    shared = await Rendezvous.open(shared=True)

    assert meeting.folder.stat().st_mode & 0o777 == 0o700
    assert shared.folder.stat().st_mode & 0o777 == 0o711
    await shared.close()
    assert not shared.folder.exists()
