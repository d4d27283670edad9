// Package names resolves the names of threads and steps that users type.
//
// The name of a thread is its full ID, a unique prefix or suffix of it, "@" for the newest, "@^" or "@{2}" for
// an older one, or <parent>/<key> for a child. The name of a step is its hash, a unique prefix of it, or its
// position in a thread: <thread>@3, <thread>@-1, <thread>@<role>, <thread>@<role>@2.
package names

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/threadid"
)

// Newest refers to the thread that was started last in this home, ended or not.
const Newest = "@"

// shortest is the minimum length of a suffix that can stand for an ID. Suffixes only match threads started
// here, because other users can choose the IDs of theirs.
const shortest = 4

// Resolver resolves names of threads and steps. Its errors are *protocol.Error with a reason, or errors of
// the store and the heads.
type Resolver struct {
	Heads heads.Heads
	// Store opens the node store; only names of steps need it.
	Store func(context.Context) (cas.Store, error)
	// Child finds a child of a thread by its key.
	Child func(ctx context.Context, parent, key string) (string, error)
	Warn  func(string) // called with warnings, if not nil
	// Alias, if not nil, resolves names that only the caller knows.
	Alias func(ctx context.Context, name string) (id string, known bool, err error)
	// Any makes "@" the newest thread of all, even if it comes from another machine.
	Any bool
}

// In returns a resolver for the threads of a reader.
func In(r *status.Reader) Resolver {
	return Resolver{
		Heads: r.Heads, Store: func(context.Context) (cas.Store, error) { return r.Store, nil }, Child: r.Child,
		Warn: r.Warn,
	}
}

// maxMessage is the maximum length of an error message, which may quote a name of any length.
const maxMessage = 1000

func fail(code protocol.Code, format string, args ...any) *protocol.Error {
	return &protocol.Error{Code: code, Message: plaintext.Short(fmt.Sprintf(format, args...), maxMessage)}
}

// Thread resolves the name of a thread. Children are only found by ID or by key.
func (r Resolver) Thread(ctx context.Context, name string) (id string, err error) {
	if r.Alias != nil {
		if id, known, err := r.Alias(ctx, name); known {
			return id, err
		}
	}
	if parent, key, ok := CutChild(name); ok {
		if parent, err = r.Thread(ctx, parent); err != nil {
			return "", err
		}
		return r.Child(ctx, parent, key)
	}
	if n, ok := newestBut(name); ok {
		return r.newest(ctx, n)
	}
	if id, err := threadid.Parse(name); err == nil {
		return id, r.known(ctx, id)
	}
	return r.byPart(ctx, name)
}

// Child returns the name of a child: its path of keys, with the label if that adds information.
func Child(path, label string) string { return children.Named(path, label) }

// CutChild splits the name of a child into the names of its parent and key. File paths are not names of
// children.
func CutChild(name string) (parent, key string, ok bool) {
	i := strings.LastIndexByte(name, '/')
	if i <= 0 || i == len(name)-1 || strings.ContainsAny(name[:1], "./~") || strings.HasSuffix(name, ".yaml") ||
		strings.HasSuffix(name, ".yml") {
		return "", "", false
	}
	return name[:i], name[i+1:], true
}

// damaged is a Heads that can be partly unreadable.
type damaged interface {
	Damage(context.Context) error       // damage in any thread
	DamagedHeads(context.Context) error // damage in active threads
}

// known returns an error if no active or ended thread has the ID.
func (r Resolver) known(ctx context.Context, id string) error {
	at, err := heads.Find(ctx, r.Heads, id)
	switch x, may := r.Heads.(damaged); {
	case errors.Is(err, heads.ErrNoThread):
		return r.unknown(ctx, id)
	case err != nil || at.End == nil || !may || r.Warn == nil:
	default:
		if damage := x.DamagedHeads(ctx); damage != nil {
			r.Warn(fmt.Sprintf("%v; if it is the line of thread %s, the thread is active", damage, id))
		}
	}
	return err
}

// newest returns the n-th newest thread that was started here, counting from 0.
func (r Resolver) newest(ctx context.Context, n int) (string, error) {
	ids, err := r.Threads(ctx)
	if err != nil {
		return "", err
	}
	if len(ids) == 0 {
		return "", fail(protocol.CodeNotFound, "no threads yet").Because("no-thread-yet")
	}
	sorting.Func(ids, threadid.NewestFirst)
	if r.Any && n < len(ids) {
		return ids[n], nil
	}
	// The user may be about to step or kill @, so don't guess.
	facts, err := r.Heads.AllFacts(ctx)
	if err != nil {
		return "", unclear("newest-damaged", err.Error())
	}
	left := n
	for _, id := range ids {
		switch known := facts[id]; {
		case known.Parent != nil: // children are named by their parent
		case known.Doubt != nil:
			return "", unclear("newest-damaged", "thread "+id+" may come from another machine: "+known.Doubt.Error())
		case known.Unclear():
			return "", unclear("newest-lost", "thread "+id+" may come from another machine: its line in facts.jsonl was damaged or lost")
		case known.StartedHere() && left == 0:
			return id, nil
		case known.StartedHere():
			left--
		}
	}
	if n > 0 {
		return "", fail(protocol.CodeNotFound, "fewer than %d threads were started here", n+1).
			Because("too-few-threads")
	}
	return "", fail(protocol.CodeNotFound, "no thread for @: all threads were imported, and @ is the newest one "+
		"started here").
		Because("all-imported", "thread", ids[0])
}

// unclear returns the error if it cannot be determined which thread @ is.
func unclear(reason, why string) error {
	return fail(protocol.CodeInvalid, "cannot determine the newest thread (@): %s", why).Because(reason)
}

func (r Resolver) byPart(ctx context.Context, name string) (string, error) {
	part := protocol.FoldCrockford(name)
	all, err := r.Threads(ctx)
	if err != nil {
		return "", err
	}
	var matches []string
	facts, _ := r.Heads.AllFacts(ctx) // threads of uncertain origin match by prefix only
	for _, id := range all {
		if facts[id].Parent != nil {
			continue // children are named by their parent
		}
		ends := facts != nil && len(part) >= shortest && strings.HasSuffix(id, part) && facts[id].StartedHere()
		if part != "" && (strings.HasPrefix(id, part) || ends) {
			matches = append(matches, id)
		}
	}
	switch len(matches) {
	case 0:
		return "", r.unknown(ctx, name)
	case 1:
		return matches[0], nil
	}
	slices.Reverse(matches) // newest first
	return "", suggest.Ambiguous("thread", name, matches)
}

// Part normalizes a prefix or suffix of an ID, for searching a list of IDs. It returns false if name is too
// short or cannot be part of an ID.
func Part(name string) (part string, ok bool) {
	part = protocol.FoldCrockford(name)
	return part, len(part) >= shortest && !strings.ContainsAny(name, "@/")
}

// Short returns the suffix of an ID that users can type for a thread started here.
func Short(id string) string { return id[max(0, len(id)-2*shortest):] }

// Of returns an ID as a user can type it: short for a thread started here, in full for an imported one.
func Of(id string, facts map[string]heads.Facts) string {
	if facts != nil && facts[id].StartedHere() {
		return Short(id)
	}
	return id
}

// Threads lists all active and ended threads, without duplicates.
func (r Resolver) Threads(ctx context.Context) ([]string, error) {
	seen := map[string]bool{}
	for h, err := range r.Heads.Heads(ctx) {
		if err != nil {
			return nil, err
		}
		seen[h.Thread] = true
	}
	for e, err := range r.Heads.History(ctx) {
		switch {
		case err == nil:
			seen[e.Thread] = true
		case !errors.As(err, new(*protocol.Error)): // other than a damaged old line
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(seen)), nil
}

// unknown returns the error for a name that matches no thread. It reports what else the name matches.
func (r Resolver) unknown(ctx context.Context, name string) error {
	if name != "" && strings.Trim(name, Newest) == "" {
		return fail(protocol.CodeNotFound, "thread not found: %s", name).Because("repeated-newest")
	}
	of, _, found := strings.Cut(name, Newest)
	if found && of == "" {
		of, _ = CutNewest(name)
	}
	if found && of != name { // unless it is @{x}
		if _, _, err := r.Step(ctx, name); err != nil {
			return err
		}
		return namesStep(name, of)
	}
	if strings.ContainsAny(name, `./\`) {
		return fail(protocol.CodeNotFound, "file not found: %s", name).Because("names-path", "path", name)
	}
	if s, err := r.Store(ctx); err == nil {
		if _, err := cas.Read[protocol.Step](ctx, s, protocol.Hash(protocol.FoldCrockford(name))); err == nil {
			return namesStep(name, "")
		}
	}
	if x, ok := r.Heads.(heads.Registry); ok {
		if _, err := x.Workflow(ctx, name); err == nil {
			return fail(protocol.CodeNotFound, "%s is a workflow, not a thread", name).
				Because("names-workflow", "workflow", name)
		}
	}
	if x, ok := r.Heads.(damaged); ok {
		if err := x.Damage(ctx); err != nil {
			return fail(protocol.CodeNotFound, "thread not found: %s; it may be in a line that cannot be read:\n%v", name, err).Because("threads-damaged")
		}
	}
	if ids, err := r.Threads(ctx); err == nil && len(name) >= shortest {
		ends := func(id string) bool { return strings.HasSuffix(id, protocol.FoldCrockford(name)) }
		if at := slices.IndexFunc(ids, ends); at >= 0 {
			return fail(protocol.CodeNotFound, "thread not found: %s (for an imported thread, type the start of "+
				"its id)", name).Because("end-of-foreign-id", "thread", ids[at])
		}
	}
	return fail(protocol.CodeNotFound, "thread not found: %s", name).Because("no-such-thread")
}

func namesStep(name, thread string) error {
	return fail(protocol.CodeNotFound, "%s is a step, not a thread", name).
		Because("names-step", "step", name, "thread", thread)
}

// Node finds a node by its hash or a unique prefix of it.
func (r Resolver) Node(ctx context.Context, name string) (cas.Hash, error) {
	s, err := r.Store(ctx)
	if err != nil {
		return "", err
	}
	h, err := cas.Resolve(ctx, s, name)
	var many *cas.AmbiguousError
	switch {
	case errors.As(err, &many):
		hashes := make([]string, len(many.Candidates))
		for i, c := range many.Candidates {
			hashes[i] = string(c)
		}
		return "", suggest.Ambiguous("hash", name, hashes)
	case errors.Is(err, cas.ErrNotFound):
		none := fail(protocol.CodeNotFound, "node not found: %s", name).Because("no-node", "node", name)
		none.Err = err
		return "", none
	}
	return h, err
}

// Step resolves the name of a step or of a thread's start. thread is the thread in the name, or "".
func (r Resolver) Step(ctx context.Context, name string) (thread string, h cas.Hash, err error) {
	of, place, found := strings.Cut(name, Newest)
	if !found {
		h, err := r.Node(ctx, name)
		if err != nil {
			if id, threadErr := r.Thread(ctx, name); threadErr == nil {
				return "", "", fail(protocol.CodeNotFound, "%s is a thread, not a step", name).
					Because("names-thread", "thread", id)
			}
		}
		return "", h, err
	}
	if of == "" {
		of, place = CutNewest(name)
	}
	thread, err = r.Thread(ctx, of)
	if none := (*protocol.Error)(nil); errors.As(err, &none) && none.Code == protocol.CodeNotFound {
		err = none.Because("no-thread-in-address", "address", name)
	}
	if err != nil {
		return "", "", err
	}
	h, err = r.stepOf(ctx, thread, place)
	return thread, h, err
}

// CutNewest splits a name into @, @^ or @{2} and the position after it. A further @ may separate them, as in
// @-1, @@-1 and @^@-1.
func CutNewest(name string) (of, place string) {
	end := len(Newest)
	for end < len(name) && name[end] == '^' {
		end++
	}
	if n := strings.IndexByte(name, '}'); strings.HasPrefix(name, "@{") && n > 0 {
		end = n + 1
	}
	if rest := name[end:]; end == len(Newest) || rest == "" || rest[0] == '@' {
		return name[:end], strings.TrimPrefix(rest, Newest)
	}
	return Newest, name[len(Newest):]
}

// newestBut returns the index of the thread, counting from the newest: 0 for @, 2 for @^^ and @{2}.
func newestBut(name string) (n int, ok bool) {
	rest, ok := strings.CutPrefix(name, Newest)
	if !ok {
		return 0, false
	}
	if strings.Trim(rest, "^") == "" {
		return len(rest), true
	}
	if rest, ok = strings.CutPrefix(rest, "{"); !ok {
		return 0, false
	}
	if rest, ok = strings.CutSuffix(rest, "}"); !ok {
		return 0, false
	}
	but, err := strconv.ParseUint(rest, 10, 31)
	return int(but), err == nil
}

// StepIn is like [Resolver.Step], but name can omit the thread.
func (r Resolver) StepIn(ctx context.Context, id, name string) (cas.Hash, error) {
	of, _, _ := strings.Cut(name, Newest)
	if _, err := threadid.Parse(of); err == nil {
		_, h, err := r.Step(ctx, name)
		return h, err
	}
	if h := protocol.Hash(protocol.FoldCrockford(name)); h.Valid() {
		return r.Node(ctx, name)
	}
	return r.stepOf(ctx, id, strings.TrimLeft(name, Newest))
}

// stepOf finds the step at a position in a thread. It reads only the steps between that and the head.
func (r Resolver) stepOf(ctx context.Context, id, place string) (cas.Hash, error) {
	at, err := heads.Find(ctx, r.Heads, id)
	if err != nil || place == "" {
		return at.Head, err
	}
	s, err := r.Store(ctx)
	if err != nil {
		return "", err
	}
	t, err := thread.Open(ctx, s, at.Head)
	if err != nil {
		return "", err
	}
	c := chain{Thread: t, id: id}
	n, numberErr := strconv.Atoi(place)
	if numberErr == nil {
		return c.number(ctx, n)
	}
	role, visit, found := strings.Cut(place, Newest)
	nth := -1
	if found {
		if nth, err = strconv.Atoi(visit); err != nil || nth == 0 {
			return "", fail(protocol.CodeUsage, "invalid visit %q: want a number (1 is the first, -1 the last)",
				visit).Because("no-visit-number", "thread", id, "role", role)
		}
	}
	return c.visit(ctx, role, nth)
}

// chain is a thread that is searched for a step.
type chain struct {
	*thread.Thread
	id string
}

// number finds a step by number: positive numbers count from the start, negative ones from the end, and 0 is
// the start node.
func (c chain) number(ctx context.Context, asked int) (cas.Hash, error) {
	n := asked
	if n < 0 {
		n += c.Len() + 1
	}
	switch {
	case asked == 0:
		return c.StartHash, nil
	case n < 1 || n > c.Len():
		return "", c.none("thread %s has no step %d; it has %d", c.id, asked, c.Len())
	}
	s, err := c.find(ctx, func(s thread.Step) bool { return s.Index == n-1 })
	return s.Hash, err
}

func (c chain) none(format string, args ...any) *protocol.Error {
	return fail(protocol.CodeNotFound, format, args...).Because("no-such-step", "thread", c.id)
}

// find returns the newest matching step.
func (c chain) find(ctx context.Context, meant func(thread.Step) bool) (thread.Step, error) {
	for s, err := range c.Steps(ctx) {
		if err != nil || meant(s) {
			return s, err
		}
	}
	return thread.Step{}, c.none("thread %s has no such step", c.id)
}

// visit finds the nth step of a role, counting from 1, or from the end with -1.
func (c chain) visit(ctx context.Context, role string, nth int) (cas.Hash, error) {
	visits := map[string]int{}
	if c.Last != nil {
		visits = c.Last.Visits
	}
	total, known := visits[role]
	if !known {
		return "", c.unknownRole(ctx, role)
	}
	want := nth
	if nth < 0 {
		want = total + nth + 1
	}
	if want < 1 || want > total {
		return "", c.none("role %q has no visit %d in thread %s; it has %d", role, nth, c.id, total)
	}
	s, err := c.find(ctx, func(s thread.Step) bool { return s.Role == role && s.Visits[role] == want })
	return s.Hash, err
}

// unknownRole returns the error for a role without steps, which may or may not exist.
func (c chain) unknownRole(ctx context.Context, role string) error {
	wf, err := c.Workflow(ctx)
	if err != nil {
		return err
	}
	if _, exists := wf.Roles[role]; exists {
		return c.none("role %q has no step in thread %s yet", role, c.id)
	}
	near := append(suggest.Nearest(role, slices.Sorted(maps.Keys(wf.Roles)), 1), "")
	return fail(protocol.CodeNotFound, "thread %s has no step %q: want a number or a role of its workflow", c.id,
		role).Because("no-such-step", "thread", c.id, "near", near[0])
}

// Before returns the node before a step of the thread. Before the start, it returns the start.
func Before(ctx context.Context, t *thread.Thread, id string, h cas.Hash) (cas.Hash, error) {
	if h == t.StartHash {
		return h, nil
	}
	s, err := chain{t, id}.find(ctx, func(s thread.Step) bool { return s.Hash == h })
	if err != nil || s.Prev == nil {
		return t.StartHash, err
	}
	return *s.Prev, nil
}

// CheckTitle returns an error if title is not one line of at most [protocol.MaxTitle] characters. Errors are
// *protocol.Error.
func CheckTitle(title string) error {
	switch {
	case utf8.RuneCountInString(title) > protocol.MaxTitle:
		return fault.New(protocol.CodeUsage, "title too long: at most %d characters", protocol.MaxTitle)
	case strings.TrimSpace(title) != title || plaintext.Line(title) != title:
		return fault.New(protocol.CodeUsage, "invalid title: want one line of plain text without spaces around it")
	}
	return nil
}
