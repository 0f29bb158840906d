"""Makes certificates for tests of TLS."""

import subprocess
from pathlib import Path


def pair(folder: Path, name: str) -> tuple[str, str]:
    """A certificate for this machine, signed by itself, and its key; as a person makes them."""
    certificate, key = str(folder / f"{name}.crt"), str(folder / f"{name}.key")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key
