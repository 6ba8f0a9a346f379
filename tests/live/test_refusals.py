"""What must not be served is refused, with status 2 and a sentence that says what is wrong; nothing is repaired."""

import hashlib
import shutil

import nbd
from harness import MIB, check, need, need_root, wait_for


def refused(bench, server, *words, **changes):
    """Starts the server's command again, which must be refused with all of the words."""
    command = [str(word) for word in server.command()]
    for option, value in changes.items():
        command[command.index(f"--{option.replace('_', '-')}" if len(option) > 1 else f"-{option}") + 1] = str(value)
    done = bench.attempt(*command, timeout=30)
    said = done.stderr.strip()
    check(done.returncode == 2, f"expected status 2, found {done.returncode}: {said or done.stdout}")
    check(said.startswith("error: ") and "panicked" not in said, f"not a sentence: {said}")
    for word in words:
        check(str(word) in said, f"`{word}` is not in: {said}")


def sums(folder):
    """A check of every file of an image."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


def test_second_server(bench):
    """A second server on one image is refused, and the first goes on."""
    server = bench.serve("tiny")
    client = nbd.Client(server.socket)
    client.write(0, b"\x11" * 4096)
    other = {"nbd": f"unix:{bench.path('other.sock')}", "control": bench.path("other.ctl")}
    refused(bench, server, server.image, "in use", **other)
    client.flush()
    check(client.read(0, 4096) == b"\x11" * 4096, "the first server reads something else")
    client.close()
    server.stop()


def test_other_layers(bench):
    """An image is served under the layers that it was made under; others, which keep data elsewhere, leave it as it is."""
    hosts = {
        "stripe": 'kind = "stripe"\ndrives = 2\nchunk = "64k"\n', "chunks": 'kind = "stripe"\ndrives = 2\nchunk = "16k"\n',
        "mirror": 'kind = "mirror"\ndrives = 2\nregion = "64k"\n', "restoring": 'kind = "restoring"\nlog = "256k"\n',
        "scheduler": 'kind = "scheduler"\ndepth = 4\n',
    }
    host = {name: bench.path(f"{name}.toml") for name in hosts}
    for name, text in hosts.items():
        host[name].write_text(f"[[layer]]\n{text}", encoding="utf-8")
    stack = bench.serve("tiny", image="stack", options=["--host", host["stripe"]])
    stack.stop()
    folders = sorted(folder for folder in stack.image.iterdir() if folder.is_dir())
    check(len(folders) == 2, f"a folder for each drive: {folders}")
    before = [sums(folder) for folder in folders]
    for name in ("chunks", "mirror"):
        refused(bench, stack, "layers", "chunk 64 KiB", host=host[name])
    # The drives' folders in each other's place.
    spare = stack.image / "spare"
    for order in (0, 1):
        folders[0].rename(spare)
        folders[1].rename(folders[0])
        spare.rename(folders[1])
        if order == 0:
            refused(bench, stack, "this is drive 1", "this is drive 0")
    stack.options = []
    refused(bench, stack, "images of several drives", folders[0].name)
    check([sums(folder) for folder in folders] == before, "a refused image was changed")
    alone = bench.serve("tiny", image="alone")
    alone.stop()
    before = sums(alone.image)
    for name, words in (("restoring", "without layers"), ("mirror", "the image of one drive")):
        alone.options = ["--host", host[name]]
        refused(bench, alone, words)
    check(sums(alone.image) == before, "a refused image was changed")
    # A scheduler keeps every sector where it is.
    alone.options = ["--host", host["scheduler"]]
    alone.start()
    alone.stop()


def test_other_description(bench):
    """An image of another description is refused with the first difference."""
    server = bench.serve("tiny")
    server.stop()
    before = sums(server.image)
    text = server.device.read_text(encoding="utf-8")
    for number, (old, new, words) in enumerate([
        ('victim = "greedy"', 'victim = "fifo"', ["description", "greedy", "fifo"]),
        ("blocks_per_plane = 40", "blocks_per_plane = 41", ["blocks_per_plane", "40", "41"]),
        ('user = "12m"', 'user = "11m"', ["another description"]),
    ]):
        check(old in text, f"{old} is not in the description")
        other = bench.path(f"other-{number}.toml")
        other.write_text(text.replace(old, new), encoding="utf-8")
        refused(bench, server, server.image, *words, d=other)
    check(sums(server.image) == before, "a refused image was changed")
    server.start()
    server.stop()


def test_damaged_images(bench):
    """Truncated, longer, missing, overwritten and of another version: each is refused and left as it is."""
    server = bench.serve("tiny")
    client = nbd.Client(server.socket)
    for megabyte in range(8):
        client.write(megabyte * MIB, bytes([megabyte + 1]) * MIB)
    client.flush()
    client.close()
    server.stop()
    good = bench.path("good")
    shutil.copytree(server.image, good)

    def change(name, at, data):
        with open(server.image / name, "r+b") as file:
            file.seek(at)
            file.write(data)

    def truncate(name, by):
        with open(server.image / name, "r+b") as file:
            file.truncate((server.image / name).stat().st_size + by)

    damages = [
        ("pages cut short", lambda: truncate("pages", -4096), ["pages", "truncated"]),
        ("pages longer", lambda: truncate("pages", 4096), ["pages", "long"]),
        ("oob cut short", lambda: truncate("oob", -1), ["oob", "truncated"]),
        ("blocks cut short", lambda: truncate("blocks", -16), ["blocks", "truncated"]),
        ("blocks cut to nothing", lambda: truncate("blocks", -(server.image / "blocks").stat().st_size), ["blocks"]),
        ("oob is gone", lambda: (server.image / "oob").unlink(), ["oob: the file is missing", "what each page holds"]),
        ("pages is gone", lambda: (server.image / "pages").unlink(), ["pages: the file is missing", "data of all pages"]),
        ("records is gone", lambda: (server.image / "records").unlink(), ["records: the file is missing", "metadata"]),
        ("blocks is gone", lambda: (server.image / "blocks").unlink(), ["blocks: the file is missing", "state of each block"]),
        ("blocks is gone beside a socket", lambda: (server.image / "blocks").rename(server.image / "control.sock"),
         ["blocks: the file is missing"]),
        ("description is gone", lambda: (server.image / "description.toml").unlink(),
         ["description.toml: the file is missing", "description of the drive"]),
        ("a bit of the header", lambda: change("blocks", 30, b"\xff"), ["blocks", "damaged"]),
        ("another version", lambda: change("blocks", 0, b"ssdlab image 9\n\0"), ["version", "ssdlab image 9"]),
        ("another program's file", lambda: change("blocks", 0, b"QFI\xfb" + bytes(12)), ["not an image"]),
        ("a byte of a block's entry", lambda: change("blocks", 4096 + 5, b"\x77"), ["blocks", "damaged"]),
        ("a byte of a page's entry", lambda: change("oob", 13, b"\x77"), ["oob", "damaged", "page 0"]),
    ]
    for what, damage, words in damages:
        shutil.rmtree(server.image)
        shutil.copytree(good, server.image)
        damage()
        before = sums(server.image)
        try:
            refused(bench, server, server.image, *words)
            after = sums(server.image)
            check(after == before, f"the image was changed: {sorted(before)} before, {sorted(after)} after")
        except Exception as error:
            raise type(error)(f"{what}: {error}") from error
    # The image itself is still good.
    shutil.rmtree(server.image)
    shutil.copytree(good, server.image)
    server.start()
    client = nbd.Client(server.socket)
    good = all(set(client.read(megabyte * MIB, MIB)) == {megabyte + 1} for megabyte in range(8))
    check(good, "the good image is not")
    client.close()
    server.stop()
    return f"{len(damages)} damages"


def test_damaged_data(bench):
    """A flipped bit in the data is an I/O error for who reads it, never wrong data; the rest is served."""
    server = bench.serve("tiny")
    client = nbd.Client(server.socket)
    marks = {page: bytes([page % 251 + 1]) * 4096 for page in range(256)}
    for page, data in marks.items():
        client.write(page * 4096, data)
    client.close()
    server.stop()
    pages = (server.image / "pages").read_bytes()
    at = pages.index(marks[100])
    with open(server.image / "pages", "r+b") as file:
        file.seek(at + 1234)
        file.write(bytes([marks[100][0] ^ 4]))
    server.start()
    client = nbd.Client(server.socket)
    errors = 0
    for page, data in marks.items():
        try:
            check(client.read(page * 4096, 4096) == data, f"page {page} holds something else")
        except nbd.Error as error:
            check(error.errno == 5, f"page {page}: errno {error.errno}")
            check(page == 100, f"page {page} cannot be read")
            errors += 1
    check(errors == 1, "the flipped bit went unnoticed")
    client.write(100 * 4096, marks[100])
    check(client.read(100 * 4096, 4096) == marks[100], "what was written over it is not there")
    client.close()
    lines = [line for line in server.stop().splitlines() if "damaged" in line]
    check(len(lines) == 1, f"one line for the damaged page, found {lines}")
    words = [f"warning: {server.image / 'pages'}: ", f"at offset {at - at % 4096} ", f"page {at // 8192 % 12} of block {at // 8192 // 12} "]
    check(all(word in lines[0] for word in words), f"not all of {words} are in: {lines[0]}")


def test_many_damaged_pages(bench):
    """Of many damaged pages the server names some, each once, and counts the others."""
    server = bench.serve("tiny")
    client = nbd.Client(server.socket)
    marks = [page.to_bytes(2) * 2048 for page in range(1, 257)]
    for page, data in enumerate(marks):
        client.write(page * 4096, data)
    client.close()
    server.stop()
    path = server.image / "pages"
    data = path.read_bytes()
    damaged = {data.index(mark) // 8192 for mark in marks}
    path.write_bytes(data.translate(bytes(byte ^ 1 for byte in range(256))))
    server.start()
    client = nbd.Client(server.socket)
    for _ in range(2):
        for page in range(256):
            try:
                client.read(page * 4096, 4096)
                check(False, f"page {page} was read")
            except nbd.Error as error:
                check(error.errno == 5, f"page {page}: errno {error.errno}")
    client.close()
    lines = [line for line in server.stop().splitlines() if "damaged" in line]
    named = {line.split(" at offset ")[1].split()[0] for line in lines if " at offset " in line}
    others = [line for line in lines if "not named" in line]
    check(len(named) == 16 and len(lines) == 16 + len(others), f"16 damaged pages are named once, found {lines}")
    expected = f"warning: {len(damaged) - 16} more pages are damaged"
    check(others and others[-1].startswith(expected), f"`{expected}` is not said: {others}")
    check(len(others) <= 10, f"{len(others)} lines count the others")


def test_folders_that_are_no_image(bench):
    """A folder with something else in it is not taken, and nothing is written into it."""
    server = bench.serve("tiny")
    server.stop()
    folder = bench.path("papers")
    folder.mkdir()
    (folder / "thesis.tex").write_text("all of it", encoding="utf-8")
    refused(bench, server, folder, "not an image", image=folder)
    check([path.name for path in folder.iterdir()] == ["thesis.tex"], f"left behind: {list(folder.iterdir())}")
    refused(bench, server, folder / "thesis.tex", image=folder / "thesis.tex")
    refused(bench, server, "no-such-drive", d="no-such-drive")
    refused(bench, server, "--time-scale", "sometimes", time_scale="sometimes")
    refused(bench, server, "--nbd", nbd="carrier-pigeon:1")


def test_only_the_owner_reads_an_image(bench):
    """An image is its owner's alone: a new one, one that others could read, and one served from a folder that was there."""
    server = bench.serve("tiny")
    nbd.Client(server.socket).close()

    def modes():
        paths = [server.image, *server.image.iterdir()]
        return {path.name: oct(path.stat().st_mode & 0o777) for path in paths if path.is_dir() or path.is_file()}

    private = {name: "0o700" if name == server.image.name else "0o600" for name in modes()}
    check(len(private) == 6, f"the image holds {sorted(private)}")
    check(modes() == private, f"a new image: {modes()}")
    server.stop()
    server.image.chmod(0o755)
    server.start()
    check(modes() == private, f"a folder that others could look into: {modes()}")
    server.stop()
    for name in ("blocks", "pages", "oob", "records", "description.toml"):
        (server.image / name).chmod(0o640)
        refused(bench, server, server.image / name, "mode is 640")
        (server.image / name).chmod(0o600)
    server.start()
    server.stop()


def test_folders_of_other_users(bench):
    """A folder that another user prepared is refused: no file behind its links is changed, and that user reads nothing."""
    need_root()
    server = bench.serve("tiny")
    server.stop()
    bench.folder.chmod(0o755)
    place = bench.path("public")
    place.mkdir()
    place.chmod(0o1777)
    precious = bench.path("precious")
    precious.write_text("very precious", encoding="utf-8")
    precious.chmod(0o644)

    def as_other(*command):
        bench.run(*command, user=65534, group=65534, extra_groups=[], umask=0)
    folder = place / "drive"
    as_other("mkdir", "-m", "777", folder)
    as_other("touch", folder / "blocks.unfinished", folder / "oob", folder / "records")
    as_other("ln", "-s", precious, folder / "pages")
    refused(bench, server, folder, "belongs to user 65534", image=folder)
    # The same files in a folder of ours, to which others may write.
    ours = place / "ours"
    ours.mkdir()
    ours.chmod(0o777)
    as_other("ln", "-s", precious, ours / "pages")
    as_other("touch", ours / "blocks.unfinished")
    refused(bench, server, "blocks.unfinished", "belongs to user 65534", image=ours)
    (ours / "blocks.unfinished").unlink()
    (ours / "blocks.unfinished").touch(mode=0o600)
    refused(bench, server, "pages", "symbolic link", image=ours)
    check(precious.read_text(encoding="utf-8") == "very precious", "a file behind a link was changed")
    # A link in the place of the folder, and one to an image of ours.
    as_other("ln", "-s", server.image, place / "way")
    refused(bench, server, "way", "symbolic link", image=place / "way")
    # Drives of a stack are in folders of one folder.
    host = bench.path("stripe.toml")
    host.write_text('[[layer]]\nkind = "stripe"\ndrives = 2\n', encoding="utf-8")
    server.options = ["--host", str(host)]
    refused(bench, server, folder, "belongs to user 65534", image=folder)
    check(sorted(path.name for path in folder.iterdir()) == ["blocks.unfinished", "oob", "pages", "records"], "files came")


def test_control_socket_is_private(bench):
    """The control socket is its owner's alone before the first connection is possible."""
    need(strace="strace")
    server = bench.serve("tiny")
    server.stop()
    calls = bench.path("calls")
    command = [str(word) for word in server.command()]
    process = bench.start("strace", "-f", "-e", "trace=bind,listen,chmod,fchmod,fchmodat", "-o", calls, *command, umask=0)
    wait_for(server.control.exists, "the control socket")
    mode = oct(server.control.stat().st_mode & 0o777)
    check(mode == "0o600", f"a socket of mode {mode}")
    wait_for(lambda: server.listening in process.log.read_text(encoding="utf-8"), "the server to listen")
    bench.run(bench.ssdlab, "stat", "-n", "1", server.control)
    said = calls.read_text(encoding="utf-8")
    lines = [line.split(None, 1)[1] for line in said.splitlines() if "(" in line]
    bound = next(index for index, line in enumerate(lines) if line.startswith("bind(") and str(server.control) in line)
    descriptor = lines[bound].removeprefix("bind(").split(",")[0]
    listens = next(index for index, line in enumerate(lines) if index > bound and line.startswith(f"listen({descriptor}"))
    private = [index for index, line in enumerate(lines)
               if line.startswith(f"fchmod({descriptor}, 0600)") or "chmod" in line and str(server.control) in line]
    check(private and private[0] < listens, f"it listens before its mode is set: {lines}")


def test_metrics_stay_on_this_machine(bench):
    """Metrics beyond loopback need --allow-remote, and so does NBD; both messages name it."""
    server = bench.serve("tiny")
    server.stop()
    for option, value in (("--prometheus", "0.0.0.0:0"), ("--nbd", "tcp:0.0.0.0:0")):
        command = [str(word) for word in server.command()]
        if option in command:
            command[command.index(option) + 1] = value
        else:
            command += [option, value]
        done = bench.attempt(*command, timeout=30)
        check(done.returncode == 2, f"{option} {value}: expected status 2, found {done.returncode}: {done.stderr}")
        check("--allow-remote" in done.stderr and value.removeprefix("tcp:") in done.stderr, done.stderr)
    server.options = ["--prometheus", "0.0.0.0:0", "--allow-remote"]
    server.start()
    check("metrics: http://0.0.0.0:" in server.said(), server.said())
    server.stop()


def test_options_are_named_in_errors(bench):
    """What cannot be written is named with the option that asked for it; a refused drive leaves a recording as it is."""
    server = bench.serve("tiny")
    nowhere = bench.path("nowhere") / "trace.csv"
    for command in (["record", server.control, "--out", nowhere], ["record", server.control, "-o", nowhere]):
        done = bench.attempt(bench.ssdlab, *command, timeout=30)
        check(done.returncode == 2 and f"--out {nowhere}" in done.stderr and "--record" not in done.stderr, done.stderr)
    trace = bench.path("trace.csv")
    done = bench.attempt(bench.ssdlab, "record", server.control, "--out", trace, "--seconds", "nan", timeout=30)
    check(done.returncode == 2 and "--seconds" in done.stderr, done.stderr)
    trace.write_text("an earlier recording")
    server.options = ["--record", str(trace)]
    refused(bench, server, "in use", nbd=f"unix:{bench.path('other.sock')}", control=bench.path("other.ctl"))
    check(trace.read_text() == "an earlier recording", "the recording of a drive that was not served is empty")
    server.options = ["--record", str(nowhere)]
    server.stop()
    refused(bench, server, f"--record {nowhere}")
