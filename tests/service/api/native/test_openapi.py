"""The OpenAPI document says what the service does."""

import msgspec

from rbmle.service.api.native.openapi import openapi
from rbmle.service.configuration import ServiceConfiguration


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
    }
    rank = document["paths"]["/v1/rank"]["post"]
    assert set(rank["responses"]) == {
        *("201", "400", "401", "403", "408", "409", "413", "429", "503"),
    }
    assert set(document["paths"]["/v1/events/{id}"]["get"]["responses"]) == {
        *("200", "400", "401", "403", "404", "429", "503"),
    }
    reward = document["paths"]["/v1/events/{id}/reward"]["post"]
    assert {"204", "404", "409"} <= set(reward["responses"])
    assert rank["responses"]["503"]["headers"]["retry-after"]["required"]


def test_the_openapi_document_has_all_that_it_refers_to() -> None:
    document = openapi("0.1.0")
    text = msgspec.json.encode(document).decode()
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert names <= set(document["components"]["schemas"])
    assert document["components"]["schemas"]["RankBody"]["additionalProperties"] is False
