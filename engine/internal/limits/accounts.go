// Package limits keeps the rate limits of accounts. A provider that refuses one agent refuses
// every agent of the same account, so <home>/limits/<account>.json records until when. Every
// process of the home reads it before it starts an agent:
//
//   - limit.go: what a refusal makes of a limit, and what an agent may do under it;
//   - accounts.go: the files, and the pass under which an agent runs;
//   - day.go: what all agents of a home may cost until midnight.
//
// When a limit is reset, one agent, the scout, asks first; the others wait for its answer. All
// locks are files that end with their holder, and a limit ends with its time, so a killed
// process leaves nothing that blocks another.
package limits

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/retry"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Terms are the settings under which an agent asks for an account.
type Terms struct {
	decide.Policy
	Day    Day // at its limit no agent starts
	Places int // how many agents of the account's name may run at once; 0: any number
	// Since is when a person asked to continue now: limits noted until then do not count. The zero
	// time: nobody did.
	Since time.Time
	// Waits is called again and again while the agent has to wait, with how long it has. It
	// returns why the wait ends, or nil. It can be nil.
	Waits func(waited time.Duration) error
}

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
	// patience is how long others wait for a scout: one that is refused is so within seconds, and
	// one that works may do so for an hour.
	patience = 30 * time.Second
	// brief is how long a process waits for another one that writes the same limit.
	brief = 5 * time.Second
)

func (a Accounts) file(name string) string { return filepath.Join(a.Dir, name) }

// limit reads the limit of an account. With an error it does not count.
func (a Accounts) limit(id string) (l Limit, err error) {
	path := a.file(id + limitSuffix)
	data, err := safeopen.ReadFile(path, maxLimit, safeopen.NoFollow)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Limit{}, nil
	case err != nil:
	case json.Unmarshal(data, &l) != nil || !l.plausible(a.Now()):
		err = errors.New("it is damaged, or the clock was set back")
	default:
		return l, nil
	}
	return Limit{}, fmt.Errorf("the rate limit in %s does not count: %w", path, err)
}

// None reports whether no account can have a limit.
func (a Accounts) None() bool {
	_, err := os.Lstat(a.Dir)
	return errors.Is(err, fs.ErrNotExist)
}

// Held returns the limit of an account under which no agent must start. It only reads.
func (a Accounts) Held(account Account, p decide.Policy) (Limit, bool) {
	l, _ := a.limit(account.ID) // [Accounts.Enter] warns of one that does not count
	return l, l.Start(a.Now(), p, time.Time{}) == MustNotStart
}

// Active are the limits that are not reset yet, by account.
func (a Accounts) Active() map[string]Limit {
	entries, _ := os.ReadDir(a.Dir) // without it there are none
	active := map[string]Limit{}
	for _, e := range entries {
		id, is := strings.CutSuffix(e.Name(), limitSuffix)
		if !is {
			continue
		}
		l, err := a.limit(id)
		if err != nil {
			a.Warn(err.Error())
		}
		if l.Active(a.Now()) {
			active[id] = l
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
	defer free(&lock)
	was, damaged := a.limit(id)
	now := to(was)
	switch {
	case err != nil, now == was && damaged == nil:
	case now == Limit{}:
		err = a.FS.Remove(a.file(id + limitSuffix))
	default:
		var data []byte
		if data, err = json.Marshal(now); err == nil {
			err = durable.Replace(a.FS, a.file(id+limitSuffix), data, 0o600)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.Warn(fmt.Sprintf("the rate limit of %s cannot be noted: %v", id, err))
	}
	return now
}

// Pass lets one agent run. It is for one goroutine. That of a program without an account is the
// zero value.
type Pass struct {
	of      Accounts
	account Account
	terms   Terms
	begun   time.Time
	place   *durable.Held // nil: the account has any number
	scout   *durable.Held // nil: it is none
}

// Enter waits until an agent of an account may start, and returns its pass; or a limit, if it
// must not. Errors: that of [Terms].Waits, ctx's cause, or that a lock cannot be made.
func (a Accounts) Enter(ctx context.Context, account Account, t Terms) (_ *Pass, held Limit, err error) {
	p := &Pass{of: a, account: account, terms: t}
	defer func() {
		if held != (Limit{}) || err != nil {
			p.Leave()
		}
	}()
	var waited, behind time.Duration // in all, and for a scout
	for wait := retry.MinWait; ; wait = min(2*wait, retry.MaxWait) {
		if day := t.Day.UsedUp(); day != (Limit{}) {
			return nil, day, nil
		}
		l, err := a.limit(account.ID)
		if err != nil {
			a.Warn(err.Error())
			a.change(account.ID, func(l Limit) Limit { return l }) // removed; warned of once
		}
		start := l.Start(a.Now(), t.Policy, t.Since)
		if start == MustNotStart {
			return nil, l, nil
		}
		ready, err := p.take(start, behind < patience)
		if err != nil {
			return nil, Limit{}, err
		}
		if p.begun = a.Now(); ready {
			return p, Limit{}, nil
		}
		if start == MayScout {
			behind += wait
		}
		if t.Waits != nil {
			err = t.Waits(waited)
		}
		waited += wait
		if err == nil {
			err = retry.Pause(ctx, wait)
		}
		if err != nil {
			return nil, Limit{}, err
		}
	}
}

// take takes what an agent needs: a place, and after a limit the scout's lock, unless another one
// has had that for too long.
func (p *Pass) take(start Start, patient bool) (ready bool, err error) {
	if start == MustWait {
		p.Leave() // another account of the name may have no limit
		return false, nil
	}
	placed, err := p.takePlace()
	if !placed || start == MayStart || p.scout != nil || !patient {
		return placed, err
	}
	p.scout, err = try(p.of.file(p.account.ID + ".scout"))
	// Without the lock several ask, and with it another one may have got an answer just before.
	return err != nil, nil
}

// takePlace takes one of the places that the agents of an account share; false: none is free.
func (p *Pass) takePlace() (placed bool, err error) {
	for n := 0; n < p.terms.Places && p.place == nil && err == nil; n++ {
		p.place, err = try(p.of.file(fmt.Sprintf("%s.slot-%d", NewAccount(p.account.Name, nil).ID, n+1)))
	}
	return p.place != nil || p.terms.Places == 0, err
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
	if p.place == nil {
		return nil
	}
	return []*os.File{p.place.Lend()}
}

// Served notes that the provider has granted what the agent asked for: a limit from before is
// over.
func (p *Pass) Served() {
	if was, _ := p.of.limit(p.account.ID); was == (Limit{}) {
		return // nearly always
	}
	p.of.change(p.account.ID, func(l Limit) Limit {
		if l.NotedMs > p.begun.UnixMilli() {
			return l
		}
		return Limit{}
	})
}

// Refused notes a refusal, and returns the limit that follows.
func (p *Pass) Refused(r Refusal) Limit {
	r.Begun, r.At = p.begun, p.of.Now()
	return p.of.Refused(p.account, r, p.terms.Policy)
}

// Refused notes the refusal of an agent whose pass is gone, and returns the limit that follows.
func (a Accounts) Refused(account Account, r Refusal, by decide.Policy) Limit {
	return a.change(account.ID, func(l Limit) Limit { return l.After(r, by) })
}

// Leave ends the pass. A process that the agent has left behind does not keep the place.
func (p *Pass) Leave() {
	free(&p.scout)
	free(&p.place)
}

// free gives a lock back, if there is one.
func free(lock **durable.Held) {
	if *lock != nil {
		_ = (*lock).Unlock() // a lock whose file cannot be closed ends with the process
		*lock = nil
	}
}
