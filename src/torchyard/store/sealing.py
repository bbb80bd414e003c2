"""Seals what must not be read from the disk: AES-GCM under a key file that only the server's user can read."""

import hashlib
import hmac
import os
from pathlib import Path

from torchyard.domain.errors import Unavailable

KEY_BYTES = 32
NONCE_BYTES = 12


class Sealer:
    """Owner of the key. `context` (a workload's id) binds a sealed value to its place."""

    def __init__(self, key_file: Path) -> None:
        """Read the key, or make one. Raises Unavailable when the file is no key."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._key_file = key_file
        try:
            handle = os.open(key_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            key = key_file.read_bytes()
        else:
            key = os.urandom(KEY_BYTES)
            with os.fdopen(handle, "wb") as file:
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
        if len(key) != KEY_BYTES:
            raise Unavailable(f"{key_file} is no key of {KEY_BYTES} bytes", "put the right file back from a backup")
        self._key = key
        self._cipher = AESGCM(key)

    def derive(self, purpose: str) -> bytes:
        """A key of its own for each purpose; none of them tells of another, or of the file."""
        return hmac.new(self._key, f"torchyard {purpose}".encode(), hashlib.sha256).digest()

    def seal(self, data: bytes, context: str) -> bytes:
        """Bytes that say nothing to anybody without the key."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, data, context.encode())

    def open(self, blob: bytes, context: str) -> bytes:
        """What was sealed. Raises Unavailable when the key is another one or the bytes were changed."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(blob[:NONCE_BYTES], blob[NONCE_BYTES:], context.encode())
        except InvalidTag as problem:
            raise Unavailable(
                f"a sealed value cannot be opened with {self._key_file}",
                "the key file was replaced; put the old one back, or submit the workload again",
            ) from problem
