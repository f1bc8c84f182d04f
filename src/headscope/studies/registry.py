"""All kinds of studies. A new one is a folder here and a line below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from headscope.errors import RunError
from headscope.studies.base import Study

_CLASSES = {
    "flow": "headscope.studies.flow:FlowStudy",
    "ablation": "headscope.studies.ablation:AblationStudy",
    "attention_probe": "headscope.studies.attention_probe:AttentionProbeStudy",
    "structural_probe": "headscope.studies.structural_probe:StructuralProbeStudy",
    "edge_probe": "headscope.studies.edge_probe:EdgeProbeStudy",
    "keywords": "headscope.studies.keywords:KeywordStudy",
    "twins": "headscope.studies.twins:TwinsStudy",
    "in_context": "headscope.studies.in_context:InContextStudy",
    "retrieval": "headscope.studies.retrieval:RetrievalStudy",
}


class _Registry(Mapping[str, Study]):
    """Studies by their names in run.json, each imported on demand."""

    def __init__(self, classes: Mapping[str, str]) -> None:
        self._classes = dict(classes)
        self._studies: dict[str, Study] = {}

    def __getitem__(self, name: str) -> Study:
        if name not in self._studies:
            if name not in self._classes:
                raise RunError(f"unknown study {name}", f"The studies are {', '.join(self)}; another version of headscope may know it")
            module, _, kind = self._classes[name].partition(":")
            self._studies[name] = getattr(import_module(module), kind)()
        return self._studies[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The study, or the default if there is none of that name."""
        return self[name] if name in self._classes else default

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)

    def add(self, study: Study) -> None:
        """Register a study that is not part of headscope."""
        self._classes[study.name] = ""
        self._studies[study.name] = study

    def remove(self, name: str) -> None:
        """Forget a study that was added."""
        del self._classes[name], self._studies[name]


REGISTRY = _Registry(_CLASSES)


def study_of_verb(verb: str) -> Study:
    """The study of a verb of the command line."""
    return next(study for study in REGISTRY.values() if study.verb == verb)
