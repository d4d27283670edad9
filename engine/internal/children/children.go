// Package children is about the threads that play a role of another thread together.
// Which they are follows from the chain of their parent; their ids follow from it, too, so
// a child either is in the heads or has not been started. Where the parent stands follows
// from where they stand.
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
	Head  protocol.Hash // "": it has not been started
	Ended *heads.Ended
	Open  bool                // something of it is open although it has ended: it is played again
	Out   protocol.StepOutput // where it stands, while it is active
}

// Status is where a child stands; idle if it has not been started, and if who drove it was
// killed before it noted the end: a step does that.
func (k Child) Status() protocol.Status {
	switch {
	case k.Head == "", k.Ended == nil && k.Out.Status.AtEnd():
		return protocol.StatusIdle
	case k.Ended != nil && !k.Open:
		return k.Ended.Status
	}
	return k.Out.Status
}

// failed reports whether a child cannot go on by itself.
func (k Child) failed() bool {
	s := k.Status()
	return s == protocol.StatusError || s == protocol.StatusCorrupt
}

// Children are all children of a position, in the order in which they are joined.
type Children []Child

// AllEnded reports whether they can be joined.
func (k Children) AllEnded() bool {
	return !slices.ContainsFunc(k, func(k Child) bool { return k.Ended == nil || k.Open })
}

// Unstarted reports whether there is one that does not exist yet.
func (k Children) Unstarted() bool {
	return slices.ContainsFunc(k, func(k Child) bool { return k.Head == "" })
}

// KeyOf names an item by its content.
func KeyOf(item any) (string, error) {
	data, err := cas.Encode(item)
	return string(cas.XXH3.Sum("", data)), err
}

// Place is where a thread's children belong: a role, after a head.
type Place struct {
	Thread string
	Head   protocol.Hash
	Role   string
}

// AttemptKey is that of the facts for all children of a role, or, with a key, for one of
// them.
func (p Place) AttemptKey(key string) string {
	text := string(p.Head) + "/" + p.Role
	if key != "" {
		text += "/" + key
	}
	return text
}

// Asked is how often all children were asked for again.
func (p Place) Asked(parent heads.Facts) int { return parent.Attempts[p.AttemptKey("")] }

// Attempt is the number of a child's attempt. Those of one child alone go on from those
// of all, with numbers that all never have.
func (p Place) Attempt(parent heads.Facts, key string) int {
	const apart = 1000
	return p.Asked(parent)*apart + parent.Attempts[p.AttemptKey(key)]
}

// Find finds the children of a place: of is what its role asks for.
func (p Place) Find(ctx context.Context, x heads.Heads, parent heads.Facts, of []moderator.Child) (Children, error) {
	kids := make(Children, len(of))
	for i, c := range of {
		id, err := threadid.Child(p.Thread, string(p.Head), p.Role, p.Attempt(parent, c.Key), c.Key)
		if err != nil {
			return nil, err
		}
		kids[i] = Child{Child: c, ID: id}
	}
	ids := make([]string, len(kids))
	for i, k := range kids {
		ids[i] = k.ID
	}
	stand, err := Look(ctx, x, ids, nil)
	for i := range kids {
		k := &kids[i]
		if at, known := stand[k.ID]; known {
			k.Head, k.Ended = at.Head, at.End
		}
	}
	return kids, err
}

// Look finds where threads stand, those that do not exist left out: the active ones in
// one pass, and the others, unless it is known how they have ended, in another one. What
// cannot be read is about one thread: if that is one of these, starting it says so.
func Look(ctx context.Context, x heads.Heads, ids []string,
	known map[string]heads.Ended) (map[string]heads.Standing, error) {
	const few = 3
	left := make(map[string]bool, len(ids))
	for _, id := range ids {
		left[id] = true
	}
	stand := make(map[string]heads.Standing, len(ids))
	if len(left) > few {
		for h, err := range x.Heads(ctx) {
			if err == nil && left[h.Thread] {
				stand[h.Thread] = heads.Standing{Head: h.Hash}
				delete(left, h.Thread)
			}
		}
	}
	for id := range left {
		if e, ok := known[id]; ok && len(ids) > few {
			stand[id] = heads.Standing{Head: e.Head, End: &e}
			delete(left, id)
		}
	}
	if len(left) > few {
		for e, err := range x.History(ctx) {
			if err == nil && left[e.Thread] { // the newest line counts
				stand[e.Thread] = heads.Standing{Head: e.Head, End: &e}
			}
		}
		return stand, ctx.Err()
	}
	for id := range left {
		switch at, err := heads.Find(ctx, x, id); {
		case err == nil:
			stand[id] = at
		case !errors.Is(err, heads.ErrNoThread):
			return stand, err
		}
	}
	return stand, ctx.Err()
}

// Output is where a child stands, for people and programs.
func (k Child) Output() protocol.ChildOutput {
	return protocol.ChildOutput{Key: k.Key, Thread: k.ID, Status: k.Status(), Label: LabelOf(k.Child)}
}

// Tell says where a thread stands whose children are at work.
func (k Children) Tell(p Place, out *protocol.StepOutput) {
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
					why.Hint, why.Reasons, out.Error = "", fault.Resume(p.Thread, why.Code), &why
				}
			}
		}
	case count[protocol.StatusSuspended] > 0:
		asks := k[k.Suspended()]
		out.Status, out.CurrentRole = protocol.StatusSuspended, ""
		out.SuspendedRole, out.SuspendMessage = protocol.NullString(p.Role), asks.Out.SuspendMessage
		out.Question, out.Error = asks.Out.Question, asks.Out.Error
	}
}

// Suspended is the index of the first that waits for a person; -1: there is none.
func (k Children) Suspended() int {
	return slices.IndexFunc(k, func(k Child) bool { return k.Status() == protocol.StatusSuspended })
}

// failed says why those have failed that stand so.
func (k Children) failed(p Place) error {
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
	first Child
	why   error
}

// Add counts a child.
func (f *Failures) Add(k Child, why error) {
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
	err := fault.New(why.Code, "%d of %d children of role %q failed; %s: %s", f.n, f.Of, f.Role, Named(f.first.Key,
		LabelOf(f.first.Child)), why.Message)
	err.Err = f.why
	asks := func(r protocol.Reason) bool { return strings.HasPrefix(r.Name, "untrusted") } // about the whole family
	if slices.ContainsFunc(why.Reasons, asks) {
		err.Reasons = why.Reasons
		return err
	}
	return err.Because("children-failed", "thread", f.Thread, "child", Address(f.Thread, f.first.Key))
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

// LabelOf says in a few words, on one line, which item a child is for; "" if it is for
// none: then its key is a name. The key of one for an item says nothing to a person.
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

// textOfObject is what an object calls itself, else all of its texts and numbers.
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

// textOf is a text or a number on one line, "" for anything else.
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return firstLine(v)
	case float64, int, int64, uint64, json.Number:
		return firstLine(fmt.Sprint(v))
	}
	return ""
}

// firstLine is the beginning of a text: an item may have megabytes.
func firstLine(s string) string {
	const most = 4000 // bytes
	s, _, _ = strings.Cut(strings.TrimSpace(s[:min(len(s), most)]), "\n")
	return strings.Join(strings.Fields(plaintext.Line(s)), " ")
}

// Result is what has become of a child that has ended.
func (k Child) Result(ctx context.Context, nodes cas.Reader) (moderator.Result, error) {
	r := moderator.Result{Key: k.Key, Item: k.Item, Status: moderator.JoinDone}
	if !k.Ended.Status.AtEnd() {
		r.Status, r.Error = moderator.JoinFailed, "it was "+string(k.Ended.Status)
	}
	t, err := thread.Open(ctx, nodes, k.Ended.Head)
	if err != nil || t.Last == nil {
		return r, err
	}
	for s, err := range t.Steps(ctx) { // a failure is no answer, but that before it is
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

// SameTask reports whether the thread with a head was asked what a start asks.
func SameTask(ctx context.Context, nodes cas.Reader, head protocol.Hash, s protocol.Start) bool {
	if head == "" {
		return false
	}
	t, err := thread.Open(ctx, nodes, head)
	return err == nil && t.Start.Workflow == s.Workflow && t.Start.Prompt == s.Prompt &&
		reflect.DeepEqual(t.Start.Inputs, s.Inputs)
}

// IsJoinSchema reports whether a role says nothing of its own about what its children
// give together.
func IsJoinSchema(schema any) bool {
	object, _ := schema.(map[string]any)
	object = maps.Clone(object)
	delete(object, "title") // storing has given it one
	return reflect.DeepEqual(object, moderator.JoinSchema()) || reflect.DeepEqual(object, moderator.MergeSchema())
}

// Paths are those of changes, at most a thousand.
func Paths(list []snapshot.Change) []string {
	const most = 1000
	paths := make([]string, 0, min(len(list), most))
	for _, c := range list[:min(len(list), most)] {
		paths = append(paths, c.Path)
	}
	return paths
}
