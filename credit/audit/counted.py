"""Findings of checks whose numbers were counted while credit was assigned."""

from collections.abc import Mapping

from graphcredit.credit.audit.check import AuditSeverity, Finding
from graphcredit.credit.audit.run import CHECKS
from graphcredit.credit.audit.thresholds import AuditThresholds


def counted_findings(faults: Mapping[str, int], totals: Mapping[str, int]) -> list[Finding]:
    """Return what is worth a warning, without its places; errors first.

    Args:
        faults: Check to how much it affects.
        totals: What checks count, to how much of it there is.
    """
    findings = [
        Finding(
            check=check,
            severity=check.severity_of(faults[check.name], totals[check.of], AuditThresholds()),
            number=faults[check.name],
            total=totals[check.of],
            places=(),
            num_places=0,
        )
        for check in CHECKS
        if check.name in faults
    ]
    worth = (each for each in findings if each.severity is not AuditSeverity.INFO)
    return sorted(worth, key=lambda finding: finding.severity is not AuditSeverity.ERROR)
