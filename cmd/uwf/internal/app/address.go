package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/threadid"
)

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
	if strings.HasPrefix(arg, "@") {
		return a.stepOf(ctx, id, strings.TrimLeft(arg, "@"))
	}
	name, _, _ := strings.Cut(arg, "@")
	if _, err := threadid.Parse(name); err == nil {
		return a.Address(ctx, arg)
	}
	if h := protocol.Hash(protocol.FoldCrockford(arg)); h.Valid() {
		return a.Node(ctx, arg)
	}
	h, err := a.stepOf(ctx, id, arg)
	if _, numberErr := strconv.Atoi(arg); err == nil || numberErr == nil || !strings.ContainsAny(arg, "0123456789") {
		return h, err // a number is never the beginning of a hash, nor is a word
	}
	if h, otherErr := a.Address(ctx, arg); otherErr == nil {
		return h, nil
	}
	return h, err
}

// stepOf finds the step at a place in a thread. It reads as many steps as lie
// between that and the head.
func (a *App) stepOf(ctx context.Context, id, place string) (cas.Hash, error) {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return "", err
	}
	head, err := e.Head(ctx, id)
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
func stepNumber(ctx context.Context, t *thread.Thread, id string, n int) (cas.Hash, error) {
	asked := n
	if n < 0 {
		n += t.Len() + 1
	}
	switch {
	case asked == 0:
		return t.StartHash, nil
	case n < 1 || n > t.Len():
		return "", cmdline.NotFound(fmt.Sprintf("thread %s has no step %d: %s", id, asked, countOf(t)), "uwf thread steps "+id)
	}
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return "", err
		}
		if s.Index == n-1 {
			return s.Hash, nil
		}
	}
	return "", fmt.Errorf("thread %s: step %d is missing in its chain", id, n)
}

func countOf(t *thread.Thread) string {
	switch t.Len() {
	case 0:
		return "it has none yet"
	case 1:
		return "it has one"
	}
	return fmt.Sprintf("it has %d", t.Len())
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
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return "", err
		}
		if s.Role == role && s.Visits[role] == want {
			return s.Hash, nil
		}
	}
	return "", fmt.Errorf("thread %s: visit %d of role %q is missing in its chain", id, want, role)
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
	var roles []string
	for r := range wf.Roles {
		roles = append(roles, r)
	}
	hints := []string{"uwf thread steps " + id}
	if near := suggest.Nearest(role, roles, 1); len(near) > 0 {
		hints = append([]string{fmt.Sprintf("did you mean %s?", plaintext.Word(id+"@"+near[0]))}, hints...)
	}
	return cmdline.NotFound(fmt.Sprintf("thread %s has no step %q: it is neither a number nor a role of its workflow", id, role), hints...)
}
