"""Signatures, held against what the standard's own libraries give."""

import base64
import hashlib
import hmac

from service.webhooks import signing

# From the tests of the Standard Webhooks libraries (libraries/python/tests/test_webhooks.py).
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
MESSAGE, AT, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_signature_is_the_one_that_the_standards_libraries_give():
    assert signing.sign_headers(MESSAGE, AT + 0.9, BODY, [SECRET]) == {
        "webhook-id": MESSAGE,
        "webhook-timestamp": str(AT),
        "webhook-signature": SIGNATURE,
    }


def test_each_secret_gives_a_signature_so_that_receivers_can_change_theirs():
    new = signing.make_secret()
    found = signing.sign_headers(MESSAGE, AT, BODY, [new, SECRET])["webhook-signature"].split(" ")
    assert found[1] == SIGNATURE
    key = base64.b64decode(new.removeprefix("whsec_"))
    assert len(key) == 32
    assert new != signing.make_secret()
    signed = f"{MESSAGE}.{AT}.".encode() + BODY
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert found[0] == f"v1,{expected}"
