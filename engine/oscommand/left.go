package oscommand

import (
	"encoding/json"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/util/runfiles"
)

// maxEnded bounds the file that says how a command has ended, in bytes.
const maxEnded = 1 << 10

// Left is how a command has ended that ran in namespaces, whoever has waited for it; false: it has
// not, or it is not known.
func Left(dir runfiles.Dir) (agentproc.Outcome, bool) {
	text, err := careful.ReadFile(dir.File(runfiles.EndedFile), maxEnded, careful.NoFollow)
	var r plan.Report
	if err != nil || json.Unmarshal(text, &r) != nil || r.Ended == nil {
		return agentproc.Outcome{}, false
	}
	ended := proc.Waited(*r.Ended)
	return agentproc.Outcome{
		ExitCode: ended.Code, Signal: ended.Signal, Stderr: agentproc.Tail(dir.File(runfiles.StderrFile)), Contained: true,
	}, true
}
