package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
)

// UntrustedError means that a workflow with commands has not been confirmed.
type UntrustedError struct {
	Workflow protocol.Hash
	Name     string
	Why      string   // why it must be confirmed, in words that follow its name
	Commands []string // one line each
	// Thread is set if the question concerns the commands of an imported thread rather than the workflow.
	Thread string
}

func (e *UntrustedError) Error() string {
	if e.Thread != "" {
		return fmt.Sprintf("thread %s %s;\nconfirm the command of its next step, which gets inputs and answers from there:\n  %s",
			e.Thread, e.Why, strings.Join(e.Commands, "\n  "))
	}
	return fmt.Sprintf("workflow %s %s; confirm the commands that it runs as you:\n  %s",
		plaintext.Line(e.Name), e.Why, strings.Join(e.Commands, "\n  "))
}

// Line is a line of the file.
type Line struct {
	Workflow protocol.Hash `json:"workflow,omitempty"`
	Thread   string        `json:"thread,omitempty"`  // imported thread whose commands are confirmed
	Foreign  protocol.Hash `json:"foreign,omitempty"` // workflow that came with an imported thread and awaits confirmation
	// Granted is a workflow whose commands may receive the variables that the config grants by its name.
	Granted protocol.Hash `json:"granted,omitempty"`
	AtMs    int64         `json:"atMs"`
}

// maxTrusted is the maximum size of the file in bytes.
const maxTrusted = 16 << 20

// File is the append-only list of confirmed workflows and threads.
type File struct {
	Path string
	FS   durable.FS
}

// Confirm appends a line. A part of a line can precede it, after a kill.
func (f File) Confirm(l Line) error {
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return durable.AppendFile(f.FS, f.Path, slices.Concat([]byte{'\n'}, line, []byte{'\n'}), 0o600)
}

// Confirmed reports whether a line satisfies such.
func (f File) Confirmed(such func(Line) bool) (bool, error) {
	data, err := safeopen.ReadFile(f.Path, maxTrusted, safeopen.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read trusted commands: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		var l Line
		if json.Unmarshal([]byte(line), &l) == nil && such(l) {
			return true, nil
		}
	}
	return false, nil
}
