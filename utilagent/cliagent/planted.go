package cliagent

import (
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/programs"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// planted is the error for a directory with files that the program would obey without asking.
// What they start has the program's rights, and can read its login. An unconfined program
// decides by itself whom it trusts, unless it could be told and does not listen.
func (r *runner) planted() error {
	command := r.driven()
	variable, value, alone := programs.Trust(command)
	trusted := alone && r.env.Get(variable) == value
	told := r.adapter.Distrusts != nil && r.adapter.Distrusts(r.version()) || slices.Contains(command, "--setting-sources")
	if trusted || told || r.confinement == nil && (programs.AsksForTrust(command) || r.sandbox.Mode == protocol.SandboxNone && !alone) {
		return nil
	}
	path := programs.Planted(command, r.cwd)
	if path == "" {
		return nil
	}
	hint := "remove it; or say that it is trusted: "
	if variable != "" {
		hint += variable + `: "` + value + `" in env of the agent`
	}
	if !alone {
		if variable != "" {
			hint += ", and "
		}
		hint += "uwf config set " + r.key("confine") + " off"
	}
	if r.adapter.Distrusts != nil {
		hint = "update it: " + r.adapter.Install + "; or " + hint
	}
	return &Error{
		Program: r.adapter.Program, Kind: errorkind.Denied, Hint: hint,
		Text: path + " is the directory's own, and names programs, servers or variables that " + r.adapter.Program + " would obey without asking: uwf does not let it",
	}
}
