// Package children handles the child threads that play a role of a parent thread. The chain of the parent
// determines which children there are and their IDs, so a child that isn't in the heads has not been started.
// The children's states determine the parent's.
package children

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/threadid"
)

// Child is a child of a position.
type Child struct {
	moderator.Child
	ID    string
	Head  protocol.Hash // "" if it has not been started
	Ended *heads.Ended
	Open  bool                // it has ended, but has unfinished work because it is being retried
	Out   protocol.StepOutput // its state while it is active or open
}

// Status returns the status of a child. It is idle if the child has not been started, or if its driver was
// killed before it recorded the end, which the next step does.
func (k Child) Status() protocol.Status {
	switch {
	case k.Head == "", k.Ended == nil && k.Out.Status.AtEnd():
		return protocol.StatusIdle
	case k.Ended != nil && !k.Open:
		return k.Ended.Status
	}
	return k.Out.Status
}

// failed reports whether a child cannot continue by itself.
func (k Child) failed() bool {
	s := k.Status()
	return s == protocol.StatusError || s == protocol.StatusCorrupt
}

// Children holds all children of a position, in the order in which they are joined.
type Children []Child

// AllEnded reports whether the children can be joined.
func (all Children) AllEnded() bool {
	return !slices.ContainsFunc(all, func(k Child) bool { return k.Ended == nil || k.Open })
}

// Unstarted reports whether a child doesn't exist yet.
func (all Children) Unstarted() bool {
	return slices.ContainsFunc(all, func(k Child) bool { return k.Head == "" })
}

// KeyOf returns a key for an item, derived from its content.
func KeyOf(item any) (string, error) {
	data, err := cas.Encode(item)
	return string(cas.XXH3.Sum("", data)), err
}

// Place identifies the children of a thread's role after a head.
type Place struct {
	Thread string
	Head   protocol.Hash
	Role   string
}

// AttemptKey returns the key of the attempt number in the parent's facts: for one child if key is set, else
// for all children of the role.
func (p Place) AttemptKey(key string) string {
	text := string(p.Head) + "/" + p.Role
	if key != "" {
		text += "/" + key
	}
	return text
}

// RetriesOfAll returns how often all children were retried.
func (p Place) RetriesOfAll(parent heads.Facts) int { return parent.Attempts[p.AttemptKey("")] }

// Attempt returns the number of a child's attempt. It combines the retries of all children and of this child,
// so that each combination has a unique number.
func (p Place) Attempt(parent heads.Facts, key string) int {
	const apart = 1000
	own := parent.Attempts[p.AttemptKey(key)]
	return own/apart*apart*apart*apart + p.RetriesOfAll(parent)*apart + own%apart
}

// Find finds the children of a place; all lists those that its role requires.
func (p Place) Find(ctx context.Context, x heads.Heads, parent heads.Facts, all []moderator.Child) (Children, error) {
	kids, ids := make(Children, len(all)), make([]string, len(all))
	for i, c := range all {
		id, err := threadid.Child(p.Thread, string(p.Head), p.Role, p.Attempt(parent, c.Key), c.Key)
		if err != nil {
			return nil, err
		}
		kids[i], ids[i] = Child{Child: c, ID: id}, id
	}
	states, err := Look(ctx, x, ids, nil)
	for i := range kids {
		k := &kids[i]
		if at, known := states[k.ID]; known {
			k.Head, k.Ended = at.Head, at.End
		}
	}
	return kids, err
}

// Look returns the states of threads, without those that don't exist. It finds the active ones in one pass,
// and the ended ones, unless they are in known, in a second. It ignores unreadable entries: starting an
// affected thread reports the error.
func Look(ctx context.Context, x heads.Heads, ids []string,
	known map[string]heads.Ended) (map[string]heads.ThreadState, error) {
	const few = 3
	left := make(map[string]bool, len(ids))
	for _, id := range ids {
		left[id] = true
	}
	states := make(map[string]heads.ThreadState, len(ids))
	if len(left) > few {
		for h, err := range x.Heads(ctx) {
			if err == nil && left[h.Thread] {
				states[h.Thread] = heads.ThreadState{Head: h.Hash}
				delete(left, h.Thread)
			}
		}
	}
	for id := range left {
		if e, ok := known[id]; ok && len(ids) > few { // otherwise it may be active again
			states[id] = heads.ThreadState{Head: e.Head, End: &e}
			delete(left, id)
		}
	}
	if len(left) > few {
		for e, err := range x.History(ctx) {
			if err == nil && left[e.Thread] { // the newest entry counts
				states[e.Thread] = heads.ThreadState{Head: e.Head, End: &e}
			}
		}
		return states, ctx.Err()
	}
	for id := range left {
		switch at, err := heads.Find(ctx, x, id); {
		case err == nil:
			states[id] = at
		case !errors.Is(err, heads.ErrNoThread):
			return states, err
		}
	}
	return states, ctx.Err()
}

// Output returns the state of a child for display.
func (k Child) Output() protocol.ChildOutput {
	return protocol.ChildOutput{Key: k.Key, Thread: k.ID, Status: k.Status(), Label: LabelOf(k.Child)}
}

// Summarize sets the state of a parent thread from the states of its children.
func (all Children) Summarize(p Place, out *protocol.StepOutput) {
	count := map[protocol.Status]int{}
	for _, k := range all {
		count[k.Status()]++
		out.Children = append(out.Children, k.Output())
	}
	switch {
	case all.Unstarted(), all.AllEnded():
		out.Status = protocol.StatusIdle // the next step starts or joins them
	case count[protocol.StatusIdle]+count[protocol.StatusRunning]+count[protocol.StatusWaitingForChildren] > 0:
		out.Status = protocol.StatusWaitingForChildren
	case count[protocol.StatusError]+count[protocol.StatusCorrupt] > 0:
		out.Status = protocol.StatusError
		out.Error = fault.Step(all.failure(p))
	case count[protocol.StatusRateLimited] > 0:
		out.Status = protocol.StatusRateLimited
		for _, k := range all {
			if until := k.Out.RateLimitedUntil; until != nil && (out.RateLimitedUntil == nil || *until < *out.RateLimitedUntil) {
				out.RateLimitedUntil = until
				if k.Out.Error != nil {
					why := *k.Out.Error
					why.Hint, why.Reasons, out.Error = "", fault.Resume(p.Thread, why.Code), &why
				}
			}
		}
	case count[protocol.StatusSuspended] > 0:
		asks := all[all.Suspended()]
		out.Status, out.CurrentRole = protocol.StatusSuspended, ""
		out.SuspendedRole, out.SuspendMessage = protocol.NullString(p.Role), asks.Out.SuspendMessage
		out.Question, out.Error = asks.Out.Question, asks.Out.Error
	}
}

// Suspended returns the index of the first child that waits for a person, or -1.
func (all Children) Suspended() int {
	return slices.IndexFunc(all, func(k Child) bool { return k.Status() == protocol.StatusSuspended })
}

// failure returns the error for the failed children.
func (all Children) failure(p Place) error {
	f := Failures{Place: p, Of: len(all)}
	for _, k := range all {
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

// Failures collects failed children.
type Failures struct {
	Place
	Of    int // number of all children
	n     int
	first Child
	why   error
}

// Add counts a child.
func (f *Failures) Add(k Child, why error) {
	if f.n++; f.n == 1 {
		f.first, f.why = k, why
	}
}

// Err returns the error for the failed children, with the facts for a hint, or nil if there are none.
func (f *Failures) Err() error {
	if f.n == 0 {
		return nil
	}
	why := fault.Of(f.why)
	err := fault.New(why.Code, "%d of %d children of role %q failed; %s: %s", f.n, f.Of, f.Role, Named(f.first.Key,
		LabelOf(f.first.Child)), why.Message)
	err.Err = f.why
	untrusted := func(r protocol.Reason) bool { return strings.HasPrefix(r.Name, "untrusted") } // concerns all children
	if slices.ContainsFunc(why.Reasons, untrusted) {
		err.Reasons = why.Reasons
		return err
	}
	return err.Because("children-failed", "thread", f.Thread, "child", Address(f.Thread, f.first.Key))
}

// Named returns a key or a path of keys, followed by the label if that adds information.
func Named(key, label string) string {
	if label == "" {
		return plaintext.Line(key)
	}
	return plaintext.Line(key + " (" + label + ")")
}

// Below returns the path to a child of a path, and the same path with labels of items in place of keys.
func Below(path, label, key, item string) (string, string) {
	if path == "" {
		return key, item
	}
	if label == "" && item == "" {
		return path + "/" + key, ""
	}
	return path + "/" + key, cmp.Or(label, path) + "/" + cmp.Or(item, key)
}

// Address returns the name of a child on a command line.
func Address(parent, key string) string { return parent + "/" + key }

// LabelOf describes a child's item in a few words on one line. It returns "" for a child without an item,
// whose key is a readable name.
func LabelOf(c moderator.Child) string {
	const most = 60
	if c.Item == nil {
		return ""
	}
	text := textOf(c.Item)
	if object, ok := c.Item.(map[string]any); ok {
		text = textOfObject(object)
	}
	if text == "" {
		text = firstLine(c.Prompt)
	}
	return plaintext.Short(text, most)
}

// textOfObject returns the name of an object, else all its strings and numbers.
func textOfObject(object map[string]any) string {
	for _, name := range []string{"title", "name", "label", "subject", "summary", "id"} {
		if text := textOf(object[name]); text != "" {
			return text
		}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if text := textOf(object[name]); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, " · ")
}

// textOf returns a string or a number on one line, or "" for other values.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return firstLine(v)
	case float64, int, int64, uint64, json.Number:
		return firstLine(fmt.Sprint(v))
	}
	return ""
}

// firstLine returns the first line of a text, which may have megabytes.
func firstLine(s string) string {
	const most = 4000 // bytes
	s, _, _ = strings.Cut(strings.TrimSpace(s[:min(len(s), most)]), "\n")
	return strings.Join(strings.Fields(plaintext.Line(s)), " ")
}

// Result returns the result of an ended child.
func (k Child) Result(ctx context.Context, nodes cas.Reader) (moderator.Result, error) {
	r := moderator.Result{Key: k.Key, Item: k.Item, Status: moderator.JoinDone}
	if !k.Ended.Status.AtEnd() {
		r.Status, r.Error = moderator.JoinFailed, "it was "+string(k.Ended.Status)
	}
	t, err := thread.Open(ctx, nodes, k.Ended.Head)
	if err != nil || t.Last == nil {
		return r, err
	}
	for s, err := range t.Steps(ctx) { // skip failures; the answer is before them
		if err != nil {
			return r, err
		}
		if s.Error == nil {
			out, err := t.Output(ctx, s)
			r.Output = out.Value
			return r, err
		}
	}
	return r, nil
}

// SameTask reports whether the thread with a head has the same task as a start.
func SameTask(ctx context.Context, nodes cas.Reader, head protocol.Hash, s protocol.Start) bool {
	if head == "" {
		return false
	}
	t, err := thread.Open(ctx, nodes, head)
	return err == nil && t.Start.Workflow == s.Workflow && t.Start.Prompt == s.Prompt &&
		reflect.DeepEqual(t.Start.Inputs, s.Inputs)
}

// IsJoinSchema reports whether a role's schema is a default one for joined results, not the role's own.
func IsJoinSchema(schema any) bool {
	object, _ := schema.(map[string]any)
	object = maps.Clone(object)
	delete(object, "title") // storing it added a title
	return reflect.DeepEqual(object, moderator.JoinSchema()) || reflect.DeepEqual(object, moderator.MergeSchema())
}

// Paths returns the changed paths, at most a thousand.
func Paths(list []snapshot.Change) []string {
	const most = 1000
	paths := make([]string, 0, min(len(list), most))
	for _, c := range list[:min(len(list), most)] {
		paths = append(paths, c.Path)
	}
	return paths
}
