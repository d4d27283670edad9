package step

import (
	"encoding/json"
	"path/filepath"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
)

// maxFile bounds a file of a run directory, in bytes.
const maxFile = 1 << 20

// keepResult writes the result down for [KeptResult]: an agent's stdout is the place
// for it, but everything that the agent starts can write there. It does its best: the
// line on stdout is what counts.
func keepResult(runDir string, r protocol.Result) {
	line, err := json.Marshal(r)
	if err != nil || runDir == "" {
		return
	}
	_ = durable.Replace(durable.OS(), runfiles.Dir(runDir).File(runfiles.ResultFile), append(line, '\n'), 0o600)
}

// KeptResult returns the result of the last step that was submitted in a run.
func KeptResult(runDir string) (r protocol.Result, ok bool) {
	data, err := runfiles.Dir(runDir).Read(runfiles.ResultFile, maxFile)
	return r, err == nil && json.Unmarshal(data, &r) == nil && r.StepHash.Valid()
}

// taskDir is the directory in which the agent of a run was started, which is the one
// that its step names: a script may have gone to another since. It is dir if the
// run's directory, "" if there is none, does not say.
func taskDir(runDir, dir string) string {
	if at := runfiles.Dir(runDir).Record().Cwd; filepath.IsAbs(at) {
		return at
	}
	return dir
}
