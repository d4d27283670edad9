package limits

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/retry"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
)

// Account is what a provider grants to, as far as the config tells.
type Account struct {
	Name string // for people, and in concurrency of the config
	ID   string // of its limit; a plain file name
}

// NewAccount returns the account of a name. What is apart tells it from others of that name, and
// is in its id only as a hash: it can hold a key.
func NewAccount(name string, apart []string) Account {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, name[:min(len(name), 40)])
	if plain == name && len(apart) == 0 {
		return Account{Name: name, ID: name}
	}
	sum := sha256.Sum256([]byte(strings.Join(append([]string{name}, apart...), "\x00")))
	return Account{Name: name, ID: plain + "-" + hex.EncodeToString(sum[:4])}
}

// Accounts are those of a home. Build it as a literal; Warn must not be nil.
type Accounts struct {
	Dir  string
	FS   durable.FS
	Now  func() time.Time
	Warn func(string)
}

const (
	limitSuffix = ".json"
	maxLimit    = 16 << 10 // bytes of a limit's file; a reason has 500
	// patience is how long others wait for a scout that is neither refused nor has said a word.
	patience = time.Minute
	// brief is how long a process waits for another one that writes the same limit.
	brief = 5 * time.Second
	// quiet is how long an agent waits before that is worth a warning.
	quiet = 3 * time.Second
)

// ErrStopped means that the wait was stopped by [Terms].Stopped.
var ErrStopped = errors.New("the wait was stopped")

func (a Accounts) file(name string) string { return filepath.Join(a.Dir, name) }

// Limit reads the limit of an account. One that cannot be read does not count.
func (a Accounts) Limit(id string) Limit {
	path := a.file(id + limitSuffix)
	data, err := careful.ReadFile(path, maxLimit, careful.NoFollow)
	if errors.Is(err, fs.ErrNotExist) {
		return Limit{}
	}
	var l Limit
	if err == nil && (!runfiles.ReadChecked(data, &l) || l.UntilMs <= 0) {
		err = errors.New("it is damaged")
	}
	if err != nil {
		a.Warn(fmt.Sprintf("the rate limit in %s does not count: %v", path, err))
		return Limit{}
	}
	return l
}

// Active are the limits that are not reset yet, by account.
func (a Accounts) Active() map[string]Limit {
	entries, _ := os.ReadDir(a.Dir) // without it there are none
	active := map[string]Limit{}
	for _, e := range entries {
		id, is := strings.CutSuffix(e.Name(), limitSuffix)
		if l := (Limit{}); is {
			if l = a.Limit(id); l.Active(a.Now()) {
				active[id] = l
			}
		}
	}
	return active
}

// change replaces the limit of an account, while no other process does. Whatever cannot be
// written costs a refusal, and is a warning only.
func (a Accounts) change(id string, to func(Limit) Limit) Limit {
	ctx, cancel := context.WithTimeout(context.Background(), brief)
	defer cancel()
	lock, err := durable.Lock(ctx, a.file(id+".lock"))
	if err != nil {
		a.Warn(fmt.Sprintf("the rate limit of %s cannot be noted: %v", id, err))
		return to(Limit{})
	}
	defer func() { _ = lock.Unlock() }()
	was := a.Limit(id)
	now := to(was)
	switch {
	case now == was:
	case now == Limit{}:
		err = a.FS.Remove(a.file(id + limitSuffix))
	default:
		var data []byte
		if data, err = runfiles.Checked(now); err == nil {
			err = durable.WriteFile(a.FS, a.file(id+limitSuffix), data, 0o600)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.Warn(fmt.Sprintf("the rate limit of %s cannot be noted: %v", id, err))
	}
	return now
}

// Pass lets one agent run. Its methods are for one goroutine, and may be called on a nil pass.
type Pass struct {
	of      Accounts
	account Account
	terms   Terms
	begun   time.Time
	place   *durable.Held // nil: the account has any number
	scout   *durable.Held // nil: it is none
}

// Enter waits until an agent of an account may start, and returns its pass; or a limit, if it
// must not. Errors: [ErrStopped], ctx's cause, or that a lock cannot be made.
func (a Accounts) Enter(ctx context.Context, account Account, t Terms) (p *Pass, held Limit, err error) {
	p = &Pass{of: a, account: account, terms: t}
	defer func() {
		if err != nil || held != (Limit{}) {
			p.Leave()
			p = nil
		}
	}()
	var waited, behind time.Duration // for a place or a reset, and for a scout
	for wait := retry.MinWait; ; wait = min(2*wait, retry.MaxWait) {
		l := a.Limit(account.ID)
		verdict := l.Decide(a.Now(), t)
		if verdict == Held {
			return p, l, nil
		}
		if p.place == nil && t.Places > 0 {
			if p.place, err = a.takePlace(account.Name, t.Places); err != nil {
				return p, held, err
			}
		}
		placed := p.place != nil || t.Places == 0
		switch {
		case placed && verdict == Scout && p.scout == nil && behind < patience:
			if p.scout, err = try(a.file(account.ID + ".scout")); err != nil {
				return p, held, err
			}
			if p.scout != nil {
				continue // another one may have got an answer before we had the lock
			}
			behind += wait
		case placed && verdict != Wait:
			p.begun = a.Now()
			return p, held, nil
		}
		if waited < quiet && waited+wait >= quiet {
			a.Warn(waitsFor(account, t, placed, verdict))
		}
		if waited += wait; t.Stopped != nil && t.Stopped() {
			return p, held, ErrStopped
		}
		if err := retry.Pause(ctx, wait); err != nil {
			return p, held, err
		}
	}
}

// waitsFor says what an agent waits for.
func waitsFor(account Account, t Terms, placed bool, v Verdict) string {
	switch {
	case !placed:
		return fmt.Sprintf("all %d places of account %s are taken (concurrency.%s): the agent waits for one", t.Places, account.Name, account.Name)
	case v == Scout:
		return "account " + account.Name + " was limited: the agent waits until the first one has an answer"
	}
	return "account " + account.Name + " is limited: the agent waits for the reset"
}

// takePlace takes one of the places that the agents of an account share; nil: none is free.
func (a Accounts) takePlace(name string, places int) (*durable.Held, error) {
	for n := range places {
		if held, err := try(a.file(fmt.Sprintf("%s.slot-%d", NewAccount(name, nil).ID, n+1))); held != nil || err != nil {
			return held, err
		}
	}
	return nil, nil
}

// try takes a lock; nil: another process has it.
func try(path string) (*durable.Held, error) {
	held, err := durable.TryLock(path)
	if errors.Is(err, durable.ErrLocked) {
		return nil, nil
	}
	return held, err
}

// Inherited are the files that the agent's process inherits: it keeps its place if ours is
// killed.
func (p *Pass) Inherited() []*os.File {
	if p == nil || p.place == nil {
		return nil
	}
	return []*os.File{p.place.Lend()}
}

// IsScout reports whether other agents wait for this one's answer.
func (p *Pass) IsScout() bool { return p != nil && p.scout != nil }

// Served notes that the provider has granted what the agent asked for: a limit from before is
// over.
func (p *Pass) Served() {
	if p == nil {
		return
	}
	over := func(l Limit) bool { return l.NotedMs > 0 && l.NotedMs <= p.begun.UnixMilli() }
	if over(p.of.Limit(p.account.ID)) {
		p.of.change(p.account.ID, func(l Limit) Limit {
			if over(l) {
				return Limit{}
			}
			return l
		})
	}
	p.endScouting()
}

// Refused notes a refusal, and returns the limit that follows.
func (p *Pass) Refused(r Refusal) Limit {
	r.Begun, r.At = p.begun, p.of.Now()
	return p.of.change(p.account.ID, func(l Limit) Limit { return l.After(r, p.terms) })
}

// Leave ends the pass. A process that the agent has left behind does not keep the place.
func (p *Pass) Leave() {
	if p == nil {
		return
	}
	p.endScouting()
	if p.place != nil {
		_ = p.place.Unlock() // closing it, which cannot fail for a lock, is what counts
		p.place = nil
	}
}

func (p *Pass) endScouting() {
	if p.scout != nil {
		_ = p.scout.Unlock()
		p.scout = nil
	}
}
