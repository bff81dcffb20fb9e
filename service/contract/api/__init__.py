"""Models of the HTTP interface's requests and answers; openapi.json is made from them."""
