"""The codes that a drift can have; docs/drift.md explains them. Pure."""

CODES = frozenset(
    {
        "drift.artifact_gone",
        "drift.auth_required",
        "drift.capability_removed",
        "drift.cards_contradict",
        "drift.digest_mismatch",
        "drift.endpoint_tools",
        "drift.hybrid_mismatch",
        "drift.inline_stale",
        "drift.interface_changed",
        "drift.manifests_differ",
        "drift.protocol_version_removed",
        "drift.representation_varies",
        "drift.stale_copy",
        "drift.tag_removed",
        "drift.type_mismatch",
        "drift.version_mismatch",
    }
)
