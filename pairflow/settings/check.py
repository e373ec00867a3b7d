"""The base class of all settings, and the check of values, which reports the first mistake in one line."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar, Union, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pairflow.arguments import nearest
from pairflow.errors import InputError
from pairflow.files import shown
from pairflow.limits import LONGEST_NAME

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=LONGEST_NAME)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


_MEMBERS = ("<", "constrained-", "literal[")  # of unions, by which Pydantic says where a mistake is


class Settings(BaseModel):
    """Base class of settings: objects that cannot be changed. An unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def recorded(self, parameters: Mapping[str, object]) -> dict[str, object]:
        """Return the settings that a file records in another form, such as a name with a hash: a dict from
        the name of the setting to that form. `parameters` are all settings in the file."""
        return {}


Model = TypeVar("Model", bound=BaseModel)


def by_name(*classes: type[Model]) -> dict[str, type[Model]]:
    """Return the classes in a dict, by the only value that each allows for its field `name`."""
    return {get_args(settings.model_fields["name"].annotation)[0]: settings for settings in classes}


def any_of(classes: Mapping[str, type[Settings]]) -> object:
    """Return the type of a field for settings of any of these classes; the key `name` selects the class."""
    return Annotated[Union[tuple(classes.values())], Field(discriminator="name")]  # noqa: UP007


def check(model: type[Model], values: Mapping[str, object], origin: str | Path) -> Model:
    """Turn `values` into settings of the class `model`.

    Raises InputError with one line about the first mistake, which begins with `origin`.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InputError(f"{origin}: {_one_line(model, error)}") from error


def _one_line(model: type[BaseModel], invalid: ValidationError) -> str:
    errors = invalid.errors(include_url=False)
    first = next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])
    where = ".".join(part for part in map(str, first["loc"]) if not part.startswith(_MEMBERS))
    if first["type"] == "extra_forbidden":
        *section, key = first["loc"]
        known = _known_keys(model, section)
        return f"unknown key '{where}'{nearest(key, known) or ': known are ' + ', '.join(known)}"
    if first["type"] == "missing":
        return f"missing key '{where}'"
    if first["type"] == "union_tag_invalid":
        names, tag = first["ctx"]["expected_tags"].replace("'", ""), first["ctx"]["tag"]
        return f"{where}: unknown name '{tag}'{nearest(tag, names.split(', '))}: known are {names}"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        return f"{where}: {message}" if where else message
    return f"{where}: {message[0].lower()}{message[1:]}, found {shown(first['input'])}"


def _known_keys(model: type[BaseModel], section: Sequence[int | str]) -> list[str]:
    """Return the keys of a section of the settings. `model` is the class of all settings. `section` has the
    keys that lead to the section, and for a union the name of the class."""
    classes = [model]
    for part in map(str, section):
        fields = [known.model_fields[part].annotation for known in classes if part in known.model_fields]
        if fields:
            classes = [inner for field in fields for inner in _classes(field)]
        else:  # the name of a class of a union, or a key of a dict
            classes = [known for known in classes if known.__name__.lower() == part.strip("<>")] or classes
    return list(dict.fromkeys(key for known in classes for key in known.model_json_schema()["properties"]))


def _classes(annotation: object) -> list[type[BaseModel]]:
    """Return the models in a type such as dict[str, Model] or Model | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [inner for argument in get_args(annotation) for inner in _classes(argument)]
