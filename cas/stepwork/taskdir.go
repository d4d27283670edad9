package stepwork

import (
	"encoding/json"
	"path/filepath"

	"github.com/united-workforce/uwf/util/careful"
)

// maxRecord bounds the record of a run, in bytes.
const maxRecord = 1 << 20

// TaskDir is the directory in which the agent of a run was started, which is the one
// that its step names: a script may have gone to another since. It is dir if the
// run's directory, "" if there is none, does not say.
func TaskDir(runDir, dir string) string {
	if runDir == "" {
		return dir
	}
	data, err := careful.ReadFile(filepath.Join(runDir, "run.json"), maxRecord, careful.NoFollow)
	if err != nil {
		return dir
	}
	var record struct {
		Cwd string `json:"cwd"`
	}
	if json.Unmarshal(data, &record) != nil || !filepath.IsAbs(record.Cwd) {
		return dir
	}
	return record.Cwd
}
