package runfiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/united-workforce/uwf/protocol"
)

// Try is a line of [TriesFile]: a try at the step that comes next, which failed.
type Try struct {
	protocol.Try
	Visit string               `json:"visit"` // the same for all tries of a visit
	Alias string               `json:"alias"` // of the agent, or its command line
	Kind  protocol.FailureKind `json:"kind,omitempty"`
	// GaveUp: the agent is not to be tried again for this visit.
	GaveUp bool `json:"gaveUp,omitempty"`
}

// Tries are failed ones, oldest first.
type Tries []Try

const (
	maxTriesFile = 4 << 20 // bytes
	maxTries     = 50      // kept apart; of more the oldest are one
)

// Tries are those that no step holds yet; done are those of the newest step: whoever
// was killed after that was made has left them here, too. A line that cannot be read is a
// try of which nobody knows what it has cost.
func (d Dir) Tries(done []protocol.Try) Tries {
	data, err := d.Read(TriesFile, maxTriesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		data = []byte(err.Error())
	}
	var tries Tries
	for line := range bytes.Lines(data) {
		var t Try
		known := func(other protocol.Try) bool { return other.AtMs == t.AtMs && other.Error == t.Error }
		if json.Unmarshal(line, &t) != nil || t.Usage.Plausible() != nil {
			t = unreadTry()
		}
		if !slices.ContainsFunc(done, known) {
			tries = append(tries, t)
		}
	}
	return tries
}

// unreadTry is the try that a line was which cannot be read.
func unreadTry() Try {
	return Try{Try: protocol.Try{
		Error: fmt.Sprintf("its line in %s cannot be read", TriesFile),
		Usage: &protocol.Usage{Turns: 1}, // unknown, not none
	}}
}

// Add adds a try. When there are many, the two oldest become one, so that no cost is
// lost and no step grows without end.
func (t Tries) Add(try Try) Tries {
	t = append(slices.Clone(t), try)
	for len(t) > maxTries {
		var both protocol.Bill
		both.Add(t[0].Usage)
		both.Add(t[1].Usage)
		t[1].Usage = both.Usage()
		t[1].Error = fmt.Sprintf("and others before: %.200s", t[1].Error)
		t = t[1:]
	}
	return t
}

// GaveUp are the agents that are not to be tried again for a visit.
func (t Tries) GaveUp(visit string) (aliases []string) {
	for _, try := range t {
		if try.Visit == visit && try.GaveUp {
			aliases = append(aliases, try.Alias)
		}
	}
	return aliases
}

// Lines are the tries as the file holds them.
func (t Tries) Lines() ([]byte, error) {
	var out []byte
	for _, try := range t {
		line, err := json.Marshal(try)
		if err != nil {
			return nil, err
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}

// InStep are the tries as the step holds them that they led to.
func (t Tries) InStep() []protocol.Try {
	var out []protocol.Try
	for _, try := range t {
		out = append(out, try.Try)
	}
	return out
}
