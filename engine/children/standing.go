package children

import (
	"cmp"
	"errors"
	"slices"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/trust"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Output is where a child stands, for people and programs.
func (k Kid) Output() protocol.ChildOutput {
	return protocol.ChildOutput{Key: k.Key, Thread: k.ID, Status: k.Status(), Label: LabelOf(k.Child)}
}

// Tell says where a thread stands whose children are at work.
func (k Kids) Tell(p Place, out *protocol.StepOutput) {
	count := map[protocol.Status]int{}
	for _, k := range k {
		count[k.Status()]++
		out.Children = append(out.Children, k.Output())
	}
	switch {
	case k.Unstarted(), k.AllEnded():
		out.Status = protocol.StatusIdle // the next step starts them, or joins
	case count[protocol.StatusIdle]+count[protocol.StatusRunning]+count[protocol.StatusWaitingForChildren] > 0:
		out.Status = protocol.StatusWaitingForChildren
	case count[protocol.StatusError]+count[protocol.StatusCorrupt] > 0:
		out.Status = protocol.StatusError
		out.Error = fault.Step(k.failed(p))
	case count[protocol.StatusRateLimited] > 0:
		out.Status = protocol.StatusRateLimited
		for _, k := range k {
			if until := k.Out.RateLimitedUntil; until != nil && (out.RateLimitedUntil == nil || *until < *out.RateLimitedUntil) {
				out.RateLimitedUntil = until
				if k.Out.Error != nil {
					why := *k.Out.Error
					why.Hint, out.Error = fault.Resume(p.Thread, why.Code), &why
				}
			}
		}
	case count[protocol.StatusSuspended] > 0:
		asks := k[k.Suspended()]
		out.Status, out.CurrentRole = protocol.StatusSuspended, nil
		out.SuspendedRole, out.SuspendMessage = &p.Role, asks.Out.SuspendMessage
		out.Question, out.Error = asks.Out.Question, asks.Out.Error
	}
}

// Suspended is the index of the first that waits for a person; -1: there is none.
func (k Kids) Suspended() int {
	return slices.IndexFunc(k, func(k Kid) bool { return k.Status() == protocol.StatusSuspended })
}

// failed says why those have failed that stand so.
func (k Kids) failed(p Place) error {
	f := Failures{Place: p, Of: len(k)}
	for _, k := range k {
		if !k.failed() {
			continue
		}
		why := fault.New(protocol.CodeFailed, "it is %s", k.Status())
		if e := k.Out.Error; e != nil {
			why.Message = e.Message
			if e.Code != "" {
				why.Code = e.Code
			}
		}
		f.Add(k, why)
	}
	return f.Err()
}

// Failures are the children that have failed.
type Failures struct {
	Place
	Of    int // all children
	n     int
	first Kid
	why   error
}

// Add counts a child.
func (f *Failures) Add(k Kid, why error) {
	if f.n++; f.n == 1 {
		f.first, f.why = k, why
	}
}

// Err says that children have failed, and how to go on; nil: none has.
func (f *Failures) Err() error {
	if f.n == 0 {
		return nil
	}
	why := fault.Of(f.why)
	err := fault.New(why.Code, "%d of %d children of role %q failed; %s: %s", f.n, f.Of, f.Role, Named(f.first.Key, LabelOf(f.first.Child)), why.Message)
	err.Err = f.why
	if errors.As(f.why, new(*trust.UntrustedError)) {
		return fault.Hinted(err, why.Hints...)
	}
	return fault.Hinted(err, "uwf thread resume "+f.Thread+" tries those again, and no other",
		"uwf thread kill "+Address(f.Thread, f.first.Key)+" lets it count as failed")
}

// Named is a key, or a path of keys, with what they are for, if they do not say that.
func Named(key, label string) string {
	if label == "" {
		return plaintext.Line(key)
	}
	return plaintext.Line(key + " (" + label + ")")
}

// Below is the path to a child, and the same with the items that keys stand for.
func Below(path, label, key, of string) (string, string) {
	if path == "" {
		return key, of
	}
	if label == "" && of == "" {
		return path + "/" + key, ""
	}
	return path + "/" + key, cmp.Or(label, path) + "/" + cmp.Or(of, key)
}

// Address names a child on a command line.
func Address(parent, key string) string { return parent + "/" + key }
