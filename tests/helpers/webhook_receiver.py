"""A receiver of webhooks, as a process of its own. It refuses the first attempt at each message.

    python webhook_receiver.py ADDRESS PORT CERTIFICATE KEY LOG

LOG has one JSON object a line: the headers of what was received, its body, and the status given.
"""

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Handler(BaseHTTPRequestHandler):
    log: Path
    seen: set[str] = set()  # noqa: RUF012  of this process

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        identity = self.headers["webhook-id"] or "without"
        status = 204 if identity in self.seen else 503
        self.seen.add(identity)
        headers = {name.lower(): text for name, text in self.headers.items()}
        with self.log.open("a") as log:
            told = {"headers": headers, "body": body.decode(), "status": status}
            log.write(json.dumps(told) + "\n")
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


def main(address, port, certificate, key, log):
    _Handler.log = Path(log)
    server = ThreadingHTTPServer((address, int(port)), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
