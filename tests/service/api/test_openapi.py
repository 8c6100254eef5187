"""The OpenAPI document says what the service does."""

import re
import sys

import msgspec

from rbmle.service.api.openapi import openapi
from rbmle.service.model.limits import LimitError, check_id
from rbmle.service.settings import SETTINGS, ServiceConfiguration


def test_the_openapi_document_asks_for_all_settings_to_put_and_for_none_to_patch() -> None:
    document = openapi("0.1.0")
    bodies = {
        method: document["paths"]["/v1/configuration"][method]["requestBody"]["content"]
        for method in ("put", "patch")
    }
    schemas = {
        method: document["components"]["schemas"][body["application/json"]["schema"]["$ref"][21:]]
        for method, body in bodies.items()
    }
    settings = list(ServiceConfiguration().to_json())
    assert list(schemas["put"]["properties"]) == list(schemas["patch"]["properties"]) == settings
    assert schemas["put"]["required"] == settings
    assert not schemas["patch"].get("required")
    assert schemas["patch"]["properties"]["exploration"] == {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": SETTINGS["exploration"].description,
    }


def test_the_openapi_document_names_every_path_and_status() -> None:
    document = openapi("0.1.0")
    assert document["openapi"] == "3.1.0"
    assert set(document["paths"]) == {
        "/v1/rank",
        "/v1/events/{id}",
        "/v1/events/{id}/reward",
        "/v1/events/{id}/activate",
        "/v1/configuration",
        "/v1/status",
        "/v1/erasures",
        "/v1/lift",
        "/v1/shadows",
        "/v1/shadows/{id}/promote",
    }
    rank = document["paths"]["/v1/rank"]["post"]
    assert set(rank["responses"]) == {
        *("201", "400", "401", "403", "408", "409", "413", "429", "503"),
    }
    assert set(document["paths"]["/v1/events/{id}"]["get"]["responses"]) == {
        *("200", "400", "401", "403", "404", "429", "503"),
    }
    reward = document["paths"]["/v1/events/{id}/reward"]["post"]
    assert {"204", "409"} <= set(reward["responses"])
    assert "404" not in reward["responses"]  # a reward may come before its rank
    assert "work budget" in reward["responses"]["429"]["description"]
    assert rank["responses"]["503"]["headers"]["retry-after"]["required"]


def test_the_openapi_document_has_all_that_it_refers_to() -> None:
    document = openapi("0.1.0")
    text = msgspec.json.encode(document).decode()
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(document["components"]["schemas"])
    assert document["components"]["schemas"]["RankBody"]["additionalProperties"] is False


def test_the_openapi_document_says_which_characters_an_id_has() -> None:
    schemas = openapi("0.1.0")["components"]["schemas"]
    patterns = {
        schemas["ActionBody"]["properties"]["id"]["pattern"],
        schemas["SlotBody"]["properties"]["id"]["pattern"],
        schemas["RankBody"]["properties"]["event"]["anyOf"][0]["pattern"],
    }
    (pattern,) = map(re.compile, patterns)
    for code in range(sys.maxunicode + 1):
        if 0xD800 <= code < 0xE000:  # surrogates are no characters, and no JSON has one by itself
            continue
        try:
            check_id(chr(code), "the id")
        except LimitError:
            assert not pattern.fullmatch(chr(code)), hex(code)
        else:  # characters that a newer Unicode calls invisible may be unknown to this one
            assert pattern.fullmatch(chr(code)) or 0x13439 <= code <= 0x1343F, hex(code)
