package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/threadid"
)

// Newest names the thread that was started last in this home, ended or not.
const Newest = "@"

// Thread finds the thread that a person means: a full id, a unique beginning or end of
// one, "@" for the newest, "@^" or "@{2}" for one that is older. All of these are threads
// that are nobody's child: a child is its parent, a slash and its key.
func (a *App) Thread(ctx context.Context, arg string) (string, error) {
	x, err := a.Index()
	if err != nil {
		return "", err
	}
	if a.Bundle != nil {
		if id, named, err := a.Bundle.only(ctx, arg); named {
			return id, err
		}
	}
	if parent, key, ok := CutChild(arg); ok {
		return a.childThread(ctx, parent, key)
	}
	if n, ok := newestBut(arg); ok {
		return a.newestThread(ctx, x, n)
	}
	if id, err := threadid.Parse(arg); err == nil {
		return id, a.known(ctx, x, id)
	}
	return a.threadByPrefix(ctx, x, arg)
}

// CutChild takes the key off what may be the name of a child. A path is none.
func CutChild(arg string) (parent, key string, ok bool) {
	i := strings.LastIndexByte(arg, '/')
	if i <= 0 || i == len(arg)-1 || strings.ContainsAny(arg[:1], "./~") || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml") {
		return "", "", false
	}
	return arg[:i], arg[i+1:], true
}

// childThread finds a child by its key.
func (a *App) childThread(ctx context.Context, parent, key string) (string, error) {
	id, err := a.Thread(ctx, parent)
	if err != nil {
		return "", err
	}
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return "", err
	}
	return e.Reader.Child(ctx, id, key)
}

// known reports an id that is neither active nor ended.
func (a *App) known(ctx context.Context, x *fileheads.Heads, id string) error {
	_, err := x.Head(ctx, id)
	if errors.Is(err, heads.ErrNoThread) {
		if _, err = x.Ended(ctx, id); err == nil {
			if damage := x.DamagedHeads(ctx); damage != nil {
				a.Say("uwf: warning: %v: if that is thread %s, it is active", damage, id)
			}
		}
	}
	if errors.Is(err, heads.ErrNoThread) {
		return a.unknownThread(ctx, x, id)
	}
	return err
}

// newestThread is the newest thread but n of those that were started here.
func (a *App) newestThread(ctx context.Context, x *fileheads.Heads, n int) (string, error) {
	ids, err := threadIDs(ctx, x)
	if err != nil {
		return "", err
	}
	if len(ids) == 0 {
		return "", cmdline.NotFound("there is no thread yet", "uwf thread start <workflow> -p '<task>'")
	}
	slices.SortFunc(ids, threadid.NewestFirst)
	if a.Bundle != nil && n < len(ids) {
		return ids[n], nil
	}
	// Whoever says @ may be about to step or to kill it: no guess will do.
	facts, err := x.AllFacts(ctx)
	if err != nil {
		return "", unclear(err.Error(), "uwf cas fsck")
	}
	left := n
	for _, id := range ids {
		switch known := facts[id]; {
		case known.Parent != nil: // a child is named by its parent
		case known.Doubt != nil:
			return "", unclear("thread "+id+" may have been started here or elsewhere: "+known.Doubt.Error(), "uwf cas fsck")
		case known.Unclear():
			return "", unclear("thread " + id + " may have been started here or elsewhere: what facts.jsonl said of it was damaged or lost")
		case known.StartedHere() && left == 0:
			return id, nil
		case known.StartedHere():
			left--
		}
	}
	if n > 0 {
		return "", cmdline.NotFound(fmt.Sprintf("there are not %d threads that were started here", n+1), "uwf thread list --all")
	}
	return "", cmdline.NotFound("@ is the newest thread that was started here, and all were imported", "the newest of those is "+ids[0], "uwf thread list --all")
}

// unclear: nobody can tell any more which thread @ means.
func unclear(why string, hints ...string) error {
	return cmdline.Invalid("cannot tell which thread @ is: "+why, append(hints, "name the thread by its id: uwf thread list --all")...)
}

func (a *App) threadByPrefix(ctx context.Context, x *fileheads.Heads, arg string) (string, error) {
	prefix := protocol.FoldCrockford(arg)
	all, err := threadIDs(ctx, x)
	if err != nil {
		return "", err
	}
	var matches []string
	facts, _ := x.AllFacts(ctx) // of whose origin there is doubt is found by the beginning only
	for _, id := range all {
		if facts[id].Parent != nil {
			continue // a child is named by its parent
		}
		ends := facts != nil && len(prefix) >= shortest && strings.HasSuffix(id, prefix) && facts[id].StartedHere()
		if prefix != "" && (strings.HasPrefix(id, prefix) || ends) {
			matches = append(matches, id)
		}
	}
	switch len(matches) {
	case 0:
		return "", a.unknownThread(ctx, x, arg)
	case 1:
		return matches[0], nil
	}
	slices.Reverse(matches) // the newest first
	return "", suggest.Ambiguous("thread", arg, matches)
}

// shortest is how much of the end of an id stands for it, at least. Strangers choose
// the ids of their threads, so it does so only for our own.
const shortest = 4

// Shortened is the end of an id of a thread of ours.
func Shortened(id string) string { return id[max(0, len(id)-2*shortest):] }

// Named is an id as a person may type it: short for a thread that was started here, whole for
// one from elsewhere.
func Named(id string, facts map[string]heads.Facts) string {
	if facts != nil && facts[id].StartedHere() {
		return Shortened(id)
	}
	return id
}

// threadIDs lists active and ended threads, each once.
func threadIDs(ctx context.Context, x *fileheads.Heads) ([]string, error) {
	seen := map[string]bool{}
	var ids []string
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for h, err := range x.Heads(ctx) {
		if err != nil {
			return nil, err
		}
		add(h.Thread)
	}
	for e, err := range x.History(ctx) {
		if err != nil {
			continue // a damaged old line must not hide the others here
		}
		add(e.Thread)
	}
	return ids, nil
}

// unknownThread says what a word is that names no thread, if it is anything.
func (a *App) unknownThread(ctx context.Context, x *fileheads.Heads, arg string) error {
	if strings.HasPrefix(arg, Newest) && strings.Trim(arg, Newest) == "" {
		return cmdline.NotFound("thread not found: "+arg, "did you mean @? It is the newest thread")
	}
	if name, _, found := strings.Cut(arg, Newest); found {
		if name == "" {
			name, _ = CutNewest(arg)
		}
		if _, err := a.Address(ctx, arg); err != nil {
			return err
		}
		return cmdline.NotFound(fmt.Sprintf("%s is a step; a thread is expected here", arg), "uwf step show "+plaintext.Word(arg), "its thread is "+name)
	}
	if strings.ContainsAny(arg, "./"+string(filepath.Separator)) {
		return cmdline.NoFile(a.Env.Dir, arg, "uwf thread list --all")
	}
	if s, err := a.Store(ctx); err == nil {
		if h := protocol.Hash(protocol.FoldCrockford(arg)); h.Valid() && isStep(ctx, s, h) {
			return cmdline.NotFound(fmt.Sprintf("%s is a step; a thread is expected here", arg), "uwf step show "+plaintext.Word(arg), "uwf thread list --all")
		}
	}
	if _, err := x.Workflow(ctx, arg); err == nil {
		return cmdline.NotFound(fmt.Sprintf("%s is a workflow; a thread is expected here", arg), "uwf thread list --all", "uwf run "+plaintext.Word(arg)+" -p '<task>'")
	}
	if err := x.Damage(ctx); err != nil {
		return cmdline.NotFound(fmt.Sprintf("thread not found: %s; but some lines cannot be read, and it may be one of them:\n%v", arg, err),
			"correct the line, or uwf cas fsck --repair moves it away")
	}
	if ids, err := threadIDs(ctx, x); err == nil && len(arg) >= shortest {
		if at := slices.IndexFunc(ids, func(id string) bool { return strings.HasSuffix(id, protocol.FoldCrockford(arg)) }); at >= 0 {
			return cmdline.NotFound("thread not found: "+arg+": a thread from elsewhere is named by the beginning of its id", "did you mean "+ids[at]+"?")
		}
	}
	return cmdline.NotFound("thread not found: "+arg, "uwf thread list --all")
}

func isStep(ctx context.Context, s cas.Store, h cas.Hash) bool {
	_, err := cas.Read[protocol.Step](ctx, s, h)
	return err == nil
}

// Node finds the node that a person means, by hash or unique prefix.
func (a *App) Node(ctx context.Context, arg string) (cas.Hash, error) {
	s, err := a.Store(ctx)
	if err != nil {
		return "", err
	}
	h, err := cas.Resolve(ctx, s, arg)
	var many *cas.AmbiguousError
	switch {
	case errors.As(err, &many):
		names := make([]string, len(many.Candidates))
		for i, c := range many.Candidates {
			names[i] = string(c)
		}
		return "", suggest.Ambiguous("hash", arg, names)
	case errors.Is(err, cas.ErrNotFound):
		out := &protocol.Error{Code: protocol.CodeNotFound, Message: "node not found: " + arg, Err: err}
		out.Hints = append(ocascli.NearHashes(ctx, s, arg), "uwf thread steps <thread>")
		return "", out
	}
	return h, err
}

// Ref is optional text as the output objects want it: null when empty.
func Ref(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// WithEngine is [App.Leaf] of a command that needs an engine.
func (a *App) WithEngine(c ucli.Command, run func(context.Context, *ucli.Context, *engine.Engine) error) *ucli.Command {
	return a.Leaf(c, func(ctx context.Context, c *ucli.Context) error {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		return run(ctx, c, e)
	})
}

// OnThread is [App.Leaf] of a command about the thread that its first argument names.
func (a *App) OnThread(
	c ucli.Command, run func(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error,
) *ucli.Command {
	return a.Leaf(c, func(ctx context.Context, c *ucli.Context) error {
		id, e, err := a.ThreadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		return run(ctx, c, e, id)
	})
}

// ThreadAndEngine is what most thread commands begin with.
func (a *App) ThreadAndEngine(ctx context.Context, c *ucli.Context, show func(engine.Event)) (string, *engine.Engine, error) {
	id, err := a.Thread(ctx, c.Args().First())
	if err != nil {
		return "", nil, err
	}
	e, err := a.Engine(ctx, show)
	return id, e, err
}

// OpenThread opens the chain that ends at a head.
func (a *App) OpenThread(ctx context.Context, head protocol.Hash) (*thread.Thread, error) {
	s, err := a.Store(ctx)
	if err != nil {
		return nil, err
	}
	return thread.Open(ctx, s, head)
}

// StepUsage is what a step may be called in every command that wants one.
const StepUsage = "A step is a hash or a prefix of one, or its place in a thread: <thread>@3 is its third step,\n" +
	"<thread>@-1 its last, <thread>@writer the last of role writer, <thread>@writer@2 that role's\n" +
	"second. Without a thread, as in @-1, it is the newest thread's."

// Address finds the node that a person means by a step: a hash, or a place in a
// thread.
func (a *App) Address(ctx context.Context, arg string) (cas.Hash, error) {
	_, h, err := a.Place(ctx, arg)
	return h, err
}

// Place is address, with the thread that was named; "": none was.
func (a *App) Place(ctx context.Context, arg string) (id string, h cas.Hash, err error) {
	name, place, found := strings.Cut(arg, Newest)
	if !found {
		h, err := a.Node(ctx, arg)
		if err != nil {
			if id, threadErr := a.Thread(ctx, arg); threadErr == nil {
				return "", "", cmdline.NotFound(fmt.Sprintf("%s is a thread, not a step", arg), "its last step is "+id+"@-1")
			}
		}
		return "", h, err
	}
	if name == "" {
		name, place = CutNewest(arg)
	}
	id, err = a.Thread(ctx, name)
	var coded *protocol.Error
	if errors.As(err, &coded) && coded.Code == protocol.CodeNotFound {
		coded.Hints = append(coded.Hints, "before the first @ stands a thread; in the newest one it is @"+arg)
	}
	if err != nil {
		return "", "", err
	}
	h, err = a.stepOf(ctx, id, place)
	return id, h, err
}

// CutNewest parts @, @^ or @{2} from the place behind it, before which another @ may
// stand: as in @-1, @@-1 and @^@-1.
func CutNewest(arg string) (name, place string) {
	end := len(Newest)
	for end < len(arg) && arg[end] == '^' {
		end++
	}
	if n := strings.IndexByte(arg, '}'); strings.HasPrefix(arg, "@{") && n > 0 {
		end = n + 1
	}
	if rest := arg[end:]; end == len(Newest) || rest == "" || rest[0] == '@' {
		return arg[:end], strings.TrimPrefix(rest, Newest)
	}
	return Newest, arg[len(Newest):]
}

// newestBut is how many newer threads than the one that is meant there are: 0 for @, 2 for
// @^^ and @{2}.
func newestBut(arg string) (n int, ok bool) {
	rest, ok := strings.CutPrefix(arg, Newest)
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
	n, err := term.Natural(rest)
	return n, err == nil
}

// AddressIn is address for a command that is about one thread: a place needs not
// say which.
func (a *App) AddressIn(ctx context.Context, id, arg string) (cas.Hash, error) {
	name, _, _ := strings.Cut(arg, "@")
	if _, err := threadid.Parse(name); err == nil {
		return a.Address(ctx, arg)
	}
	if h := protocol.Hash(protocol.FoldCrockford(arg)); h.Valid() {
		return a.Node(ctx, arg)
	}
	return a.stepOf(ctx, id, strings.TrimLeft(arg, "@"))
}

// stepOf finds the step at a place in a thread. It reads as many steps as lie
// between that and the head.
func (a *App) stepOf(ctx context.Context, id, place string) (cas.Hash, error) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return "", err
	}
	head, err := e.Reader.Head(ctx, id)
	if err != nil || place == "" {
		return head, err
	}
	t, err := a.OpenThread(ctx, head)
	if err != nil {
		return "", err
	}
	n, numberErr := strconv.Atoi(place)
	if numberErr == nil {
		return stepNumber(ctx, t, id, n)
	}
	role, visit, found := strings.Cut(place, "@")
	nth := -1
	if found {
		if nth, err = strconv.Atoi(visit); err != nil || nth == 0 {
			return "", cmdline.UsageError(fmt.Sprintf("%q is not a visit of a role: it is a number, 1 is the first, -1 the last", visit),
				fmt.Sprintf("the last one is %s@%s@-1", id, role))
		}
	}
	return roleVisit(ctx, t, id, role, nth)
}

// stepNumber finds a step by its number: from 1, from -1 back, 0 is the start.
func stepNumber(ctx context.Context, t *thread.Thread, id string, asked int) (cas.Hash, error) {
	n := asked
	if n < 0 {
		n += t.Len() + 1
	}
	switch {
	case asked == 0:
		return t.StartHash, nil
	case n < 1 || n > t.Len():
		return "", cmdline.NotFound(fmt.Sprintf("thread %s has no step %d: it has %d", id, asked, t.Len()), "uwf thread steps "+id)
	}
	s, err := find(ctx, t, id, func(s thread.Step) bool { return s.Index == n-1 })
	return s.Hash, err
}

// find is the newest step of a thread that is meant.
func find(ctx context.Context, t *thread.Thread, id string, meant func(thread.Step) bool) (thread.Step, error) {
	for s, err := range t.Steps(ctx) {
		if err != nil || meant(s) {
			return s, err
		}
	}
	return thread.Step{}, cmdline.NotFound("thread "+id+" has no such step", "uwf thread steps "+id)
}

// Before is the node before a step, which must be one of the thread's; that before the
// start is the start.
func Before(ctx context.Context, t *thread.Thread, id string, h cas.Hash) (cas.Hash, error) {
	if h == t.StartHash {
		return h, nil
	}
	s, err := find(ctx, t, id, func(s thread.Step) bool { return s.Hash == h })
	if err != nil || s.Prev == nil {
		return t.StartHash, err
	}
	return *s.Prev, nil
}

// roleVisit finds the nth step of a role: from 1, from -1 back.
func roleVisit(ctx context.Context, t *thread.Thread, id, role string, nth int) (cas.Hash, error) {
	visits := map[string]int{}
	if t.Last != nil {
		visits = t.Last.Visits
	}
	total, known := visits[role]
	if !known {
		return "", unknownRole(ctx, t, id, role)
	}
	want := nth
	if nth < 0 {
		want = total + nth + 1
	}
	if want < 1 || want > total {
		return "", cmdline.NotFound(fmt.Sprintf("role %q has no visit %d in thread %s: it has %d", role, nth, id, total), "uwf thread steps "+id)
	}
	s, err := find(ctx, t, id, func(s thread.Step) bool { return s.Role == role && s.Visits[role] == want })
	return s.Hash, err
}

// unknownRole tells a role that has not had its turn from one that does not exist.
func unknownRole(ctx context.Context, t *thread.Thread, id, role string) error {
	wf, err := t.Workflow(ctx)
	if err != nil {
		return err
	}
	if _, exists := wf.Roles[role]; exists {
		return cmdline.NotFound(fmt.Sprintf("role %q has made no step of thread %s yet", role, id), "uwf thread steps "+id)
	}
	roles := slices.Sorted(maps.Keys(wf.Roles))
	hints := append(cmdline.DidYouMean(id+"@", role, roles), "uwf thread steps "+id)
	return cmdline.NotFound(fmt.Sprintf("thread %s has no step %q: it is neither a number nor a role of its workflow", id, role), hints...)
}
