package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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
	Why      string   // it has to be, as words that follow its name
	Commands []string // a line each
	// Thread is set if it is not the workflow, but the words of a thread from elsewhere.
	Thread string
}

// Error implements error.
func (e *UntrustedError) Error() string {
	if e.Thread != "" {
		return fmt.Sprintf("thread %s %s: its inputs, answers and approvals are not from here, and its next step runs a "+
			"command as you; nothing runs before you have confirmed it for this thread:\n  %s",
			e.Thread, e.Why, strings.Join(e.Commands, "\n  "))
	}
	return fmt.Sprintf("workflow %s %s, and runs commands as you; nothing runs before you have confirmed it:\n  %s",
		plaintext.Line(e.Name), e.Why, strings.Join(e.Commands, "\n  "))
}

// Line is a line of the file.
type Line struct {
	Workflow protocol.Hash `json:"workflow,omitempty"`
	Thread   string        `json:"thread,omitempty"`  // the commands of one from elsewhere
	Foreign  protocol.Hash `json:"foreign,omitempty"` // a workflow that came with such a thread: it waits
	// Granted is a workflow whose commands may get the variables that the config gives its name.
	Granted protocol.Hash `json:"granted,omitempty"`
	AtMs    int64         `json:"atMs"`
}

// maxTrusted bounds the file, in bytes.
const maxTrusted = 16 << 20

// File is where it is kept what was confirmed.
type File struct {
	Path string
	FS   durable.FS
}

// Confirm adds a line.
func (f File) Confirm(l Line) error {
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return f.FS.Append(f.Path, append(line, '\n'), 0o600, durable.FullFlush)
}

// Confirmed reports whether there is a line such as this.
func (f File) Confirmed(such func(Line) bool) (bool, error) {
	data, err := safeopen.ReadFile(f.Path, maxTrusted, safeopen.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("read what was confirmed: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		var l Line
		if json.Unmarshal([]byte(line), &l) == nil && such(l) {
			return true, nil
		}
	}
	return false, nil
}
