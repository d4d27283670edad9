// Package limits manages the rate limits of accounts. A provider that refuses one agent refuses every agent
// of the same account, so <home>/limits/<account>.json records until when. Every process of the home reads it
// before it starts an agent:
//
//   - limit.go: derives a limit from a refusal, and what an agent may do under it;
//   - accounts.go: the files, and the pass under which an agent runs;
//   - day.go: the cost limit of all agents of a home until midnight.
//
// When a limit resets, one agent, the scout, tries first, and the others wait for its result. All locks are
// files that are released when their holder ends, and limits expire by themselves, so a killed process never
// blocks another one.
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

// Terms are the conditions under which an agent asks for a pass.
type Terms struct {
	decide.Policy
	Day    Day // daily limit; when it is reached, no agent starts
	Places int // maximum number of concurrent agents for the account's name; 0 means unlimited
	// Since is the time when a user asked to continue immediately. Limits recorded before are ignored. Zero
	// means never.
	Since time.Time
	// Waits, if not nil, is called repeatedly while the agent waits, with the time waited so far. An error
	// ends the wait.
	Waits func(waited time.Duration) error
}

// Account is the unit that a provider limits, as determined from the config.
type Account struct {
	Name string // for display, and for concurrency in the config
	ID   string // base name of its limit file
}

// NewAccount returns the account with a name. The strings in apart distinguish it from others with that name.
// The ID contains only their hash, since they may contain a key.
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

// Accounts holds the accounts of a home. Create it as a literal; Warn must not be nil.
type Accounts struct {
	Dir  string
	FS   durable.FS
	Now  func() time.Time
	Warn func(string)
}

const (
	limitSuffix = ".json"
	maxLimit    = 16 << 10 // maximum bytes of a limit file; reasons are shortened to 500
	// patience is the time for which others wait for a scout. A refused scout is done within seconds, but a
	// successful one may work for an hour.
	patience = 30 * time.Second
	// brief is the time to wait for another process that writes the same limit.
	brief = 5 * time.Second
)

func (a Accounts) file(name string) string { return filepath.Join(a.Dir, name) }

// limit reads the limit of an account. If it returns an error, ignore the limit.
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
	return Limit{}, fmt.Errorf("ignored the rate limit in %s: %w", path, err)
}

// None reports whether there are no limits at all.
func (a Accounts) None() bool {
	_, err := os.Lstat(a.Dir)
	return errors.Is(err, fs.ErrNotExist)
}

// Limited returns the limit of an account, and reports whether it forbids starting an agent. It only reads.
func (a Accounts) Limited(account Account, p decide.Policy) (Limit, bool) {
	l, _ := a.limit(account.ID) // [Accounts.Enter] warns about a damaged limit
	return l, l.Start(a.Now(), p, time.Time{}) == MustNotStart
}

// Active returns the limits that have not reset yet, by account ID.
func (a Accounts) Active() map[string]Limit {
	entries, _ := os.ReadDir(a.Dir) // a missing directory means that there are none
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

// change changes the limit of an account under a lock. A failure only causes a warning, since it costs at
// most one more refusal.
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
		a.Warn(fmt.Sprintf("could not record the rate limit of %s: %v", id, err))
	}
	return now
}

// Pass allows one agent to run. It is not safe for concurrent use. A program without an account uses the zero
// value.
type Pass struct {
	of      Accounts
	account Account
	terms   Terms
	started time.Time
	place   *durable.Held // nil if the number of agents is unlimited
	scout   *durable.Held // nil if it is not the scout
}

// Enter waits until an agent of an account may start, and returns its pass. If the agent must not start, it
// returns the limit. Errors are the error of [Terms].Waits, the cause of ctx, or a failure to create a lock.
func (a Accounts) Enter(ctx context.Context, account Account, t Terms) (_ *Pass, held Limit, err error) {
	p := &Pass{of: a, account: account, terms: t}
	defer func() {
		if held != (Limit{}) || err != nil {
			p.Leave()
		}
	}()
	var waited, behind time.Duration // total time waited, and time waited for a scout
	for wait := retry.MinWait; ; wait = min(2*wait, retry.MaxWait) {
		if day := t.Day.UsedUp(); day != (Limit{}) {
			return nil, day, nil
		}
		l, err := a.limit(account.ID)
		if err != nil {
			a.Warn(err.Error())
			a.change(account.ID, func(l Limit) Limit { return l }) // removes it, so that the warning appears only once
		}
		start := l.Start(a.Now(), t.Policy, t.Since)
		if start == MustNotStart {
			return nil, l, nil
		}
		ready, err := p.take(start, behind < patience)
		if err != nil {
			return nil, Limit{}, err
		}
		if p.started = a.Now(); ready {
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

// take takes what an agent needs: a slot, and after a limit the scout's lock, unless another agent has held
// that for too long.
func (p *Pass) take(start Start, patient bool) (ready bool, err error) {
	if start == MustWait {
		p.Leave() // another account with this name may have no limit
		return false, nil
	}
	placed, err := p.takePlace()
	if !placed || start == MayStart || p.scout != nil || !patient {
		return placed, err
	}
	p.scout, err = try(p.of.file(p.account.ID + ".scout"))
	// With the lock, check the limit again, since the previous scout may have cleared it. Without the lock
	// file, start anyway, at the risk of several scouts.
	return err != nil, nil
}

// takePlace takes one of the slots that the agents of an account share. It returns false if none is free.
func (p *Pass) takePlace() (placed bool, err error) {
	for n := 0; n < p.terms.Places && p.place == nil && err == nil; n++ {
		p.place, err = try(p.of.file(fmt.Sprintf("%s.slot-%d", NewAccount(p.account.Name, nil).ID, n+1)))
	}
	return p.place != nil || p.terms.Places == 0, err
}

// try takes a lock. It returns nil if another process holds it.
func try(path string) (*durable.Held, error) {
	held, err := durable.TryLock(path)
	if errors.Is(err, durable.ErrLocked) {
		return nil, nil
	}
	return held, err
}

// Inherited returns the files for the agent's process to inherit, so that it keeps its slot if this process
// is killed.
func (p *Pass) Inherited() []*os.File {
	if p.place == nil {
		return nil
	}
	return []*os.File{p.place.Lend()}
}

// Served records that the provider has accepted a request, which ends an earlier limit.
func (p *Pass) Served() {
	if was, _ := p.of.limit(p.account.ID); was == (Limit{}) {
		return // the common case
	}
	p.of.change(p.account.ID, func(l Limit) Limit {
		if l.NotedMs > p.started.UnixMilli() {
			return l
		}
		return Limit{}
	})
}

// Refused records a refusal and returns the resulting limit.
func (p *Pass) Refused(r Refusal) Limit {
	r.Started, r.At = p.started, p.of.Now()
	return p.of.Refused(p.account, r, p.terms.Policy)
}

// Refused records a refusal of an agent that no longer has a pass, and returns the resulting limit.
func (a Accounts) Refused(account Account, r Refusal, by decide.Policy) Limit {
	return a.change(account.ID, func(l Limit) Limit { return l.After(r, by) })
}

// Leave returns the pass. Processes that the agent has left behind don't keep its slot.
func (p *Pass) Leave() {
	free(&p.scout)
	free(&p.place)
}

// free releases a lock, if it is held.
func free(lock **durable.Held) {
	if *lock != nil {
		_ = (*lock).Unlock() // on failure, the lock is released when the process ends
		*lock = nil
	}
}
