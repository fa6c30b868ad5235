"""GitHub Enterprise behind a private authority: trusted by `SSL_CERT_FILE`, and only by it."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import os
import ssl
import sys
from pathlib import Path

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

# Trust is set up when a process starts, so the client is one of its own.
PROGRAM = """
import asyncio, sys
from issuesandbox.adapters.github.connection import GitHubConnection
from issuesandbox.adapters.github.credentials import PlainToken
from issuesandbox.clock import SystemClock
from issuesandbox.ports.errors import Unavailable

async def main():
    connection = GitHubConnection(sys.argv[1], PlainToken("token"), SystemClock())
    try:
        print(await connection.forge.own_login())
    except Unavailable as error:
        print(error)
    finally:
        await connection.close()

asyncio.run(main())
"""


def _certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for this machine that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ghe.example")])
    today = datetime.datetime.fromtimestamp(os.path.getmtime(folder), datetime.UTC)
    address = x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(secret)
    (folder / "ca.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return folder / "ca.pem", folder / "key.pem"


async def _ask(url: str, **more: str) -> str:
    environment = {"PATH": os.environ["PATH"], **more}
    command = [sys.executable, "-P", "-c", PROGRAM, url]
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    return said.decode().strip()


async def test_a_private_authority_is_trusted_where_the_environment_says_so(
    tmp_path: Path,
) -> None:
    authority, key = _certificate(tmp_path)

    async def user(_: web.Request) -> web.Response:
        return web.json_response({"login": "octocat"})

    app = web.Application()
    app.router.add_get("/api/v3/user", user)
    runner = web.AppRunner(app)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority, key)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}/api/v3"
    try:
        assert await _ask(url, SSL_CERT_FILE=str(authority)) == "octocat"
        assert "GitHub cannot be reached" in await _ask(url)
    finally:
        await runner.cleanup()
