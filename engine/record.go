package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
)

// record is run.json: the step in flight of a thread, or the last one that was
// tried. It is about one head; once the head has moved it is history.
//
// No promise depends on it after a power cut: nothing that it describes is then
// still running, and a finished result that it does not name is run again. So
// it is replaced atomically but not flushed.
type record struct {
	Thread     string        `json:"thread"`
	Workflow   protocol.Hash `json:"workflow"`
	Head       protocol.Hash `json:"head"` // that the step follows
	Role       string        `json:"role"`
	Agent      string        `json:"agent"`   // as the user named it
	Command    []string      `json:"command"` // program and configured arguments, variables as names
	PromptHash protocol.Hash `json:"promptHash"`
	LimitBase  int           `json:"limitBase"`
	Resumes    bool          `json:"resumes,omitempty"`  // the step answers a suspension or reopens the thread
	Replaces   bool          `json:"replaces,omitempty"` // the step takes the place of Head: it follows what Head follows
	More       bool          `json:"more,omitempty"`     // the engine means to make another step after this one
	Cwd        string        `json:"cwd"`
	Engine     int           `json:"engine"`          // process id of the stepping process
	Pid        int           `json:"pid"`             // of the agent and its group; 0: not started, or not yet known
	Birth      string        `json:"birth,omitempty"` // of Pid, see [proc.Birth]
	StartedAt  int64         `json:"startedAt"`       // ms
	Status     runStatus     `json:"status"`
	Error      *runError     `json:"error,omitempty"`
	StepHash   protocol.Hash `json:"stepHash,omitempty"` // added, or rejected
	Reason     string        `json:"reason,omitempty"`   // of a rejection

	// damaged: there is a record, but it cannot be read. missing: there is none.
	// Then nothing else of it is known.
	damaged, missing bool
}

type runError struct {
	Code    protocol.Code `json:"code"`
	Message string        `json:"message"`
}

// runStatus is how far a run has come.
type runStatus string

// While a run is starting or running its agent may be alive, or may have left a
// result. The other statuses are final: neither is asked any more.
const (
	runStarting runStatus = "starting" // the agent's process may exist, its id is not recorded
	runRunning  runStatus = "running"
	runDone     runStatus = "done"     // StepHash is the new head
	runFailed   runStatus = "failed"   // Error says why
	runRejected runStatus = "rejected" // the agent's step StepHash is not what was asked for
	runStopped  runStatus = "stopped"  // by a person
)

// The record is one line that ends in a sum of what is before it: a damaged one
// must not pass for another.
const (
	checkFormat = `,"check":"%08x"}`
	checkLen    = len(`,"check":"00000000"}`)
)

func encodeRecord(r record) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	data = data[:len(data)-1]
	return fmt.Appendf(data, checkFormat+"\n", crc32.ChecksumIEEE(data)), nil
}

// decodeRecord reads a record. One of the versions before there was a sum is
// believed if it says nothing that those did not.
func decodeRecord(data []byte) record {
	var r record
	line := bytes.TrimSuffix(data, []byte("\n"))
	end := max(0, len(line)-checkLen)
	if string(line[end:]) == fmt.Sprintf(checkFormat, crc32.ChecksumIEEE(line[:end])) {
		if json.Unmarshal(data, &r) == nil {
			return r
		}
		return record{damaged: true}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if d.Decode(&r) != nil || d.More() || r.Thread == "" {
		return record{damaged: true}
	}
	return r
}

func (s runStatus) inFlight() bool { return s == runStarting || s == runRunning }

// agentEnded reports whether the recorded process is known to have ended, be it that
// nobody has waited for it yet.
func (r record) agentEnded() bool { return r.Birth != "" && !proc.Lives(r.Pid, r.Birth) }

// agentPid is the agent's process id, 0 if it is not known, or if the agent has
// ended and its id belongs to another process by now.
func (r record) agentPid() int {
	if proc.Reused(r.Pid, r.Birth) {
		return 0
	}
	return r.Pid
}

// agentLives reports whether the recorded process is there. Elsewhere than on Linux
// it is not known.
func (r record) agentLives() bool {
	return r.Status.inFlight() && proc.Lives(r.Pid, r.Birth)
}

// unfinished reports whether the record is of a run from this head whose end
// nobody has seen. A record that cannot be read may be one.
func (r record) unfinished(head protocol.Hash) bool {
	return r.damaged || (r.Head == head && r.Status.inFlight())
}

// between reports whether the run has led to its step, whether or not this head,
// which was read before, is that already, and its engine meant to go on.
func (r record) between(head protocol.Hash) bool {
	return r.More && (r.Status == runDone || (r.Status.inFlight() && r.Head != head))
}

// byPerson reports whether the run, from this head, was asked for in a person's
// words, and nobody has seen its end.
func (r record) byPerson(head protocol.Hash) bool {
	return (r.Resumes || r.Replaces) && r.unfinished(head)
}

// id names one run among all of a thread's.
func (r record) id() string { return fmt.Sprintf("%d-%d", r.StartedAt, r.Engine) }

// answers reports whether the run was given exactly this task.
func (r record) answers(t task) bool {
	return r.Role == t.role && r.PromptHash == t.promptHash && r.LimitBase == t.limitBase &&
		r.Resumes == t.resumes && r.Replaces == t.replaces
}
