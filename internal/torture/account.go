package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"
)

// account is the model of a race: what the commands reported about each thread, and when they ran. It knows
// no store and no files. It accepts a history if some sequential order of the commands explains it:
//   - an acknowledged step follows all steps that were acknowledged, or seen,
//     before its command began;
//   - no command sees a head older than one that existed before the command began;
//   - a thread is killed once, and no step begins afterwards.
type account struct {
	mu      sync.Mutex
	events  map[string][]event // by thread
	tried   map[string]bool    // a kill was attempted
	ended   map[string]time.Time
	slowest time.Duration
}

// event is a head that a command has made or seen.
type event struct {
	began, ended time.Time
	head         string
	made         bool
}

func newAccount() *account {
	return &account{events: map[string][]event{}, tried: map[string]bool{}, ended: map[string]time.Time{}}
}

// begin records the start of a command. done records its result and returns an error if that is not allowed.
func (a *account) begin(args []string, began time.Time) (done func(e ended, now time.Time) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if args[1] == "kill" {
		a.tried[args[2]] = true
	}
	return func(e ended, now time.Time) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.slowest = max(a.slowest, now.Sub(began))
		if !a.allowed(e) {
			return fmt.Errorf("not allowed in a race: %s", e)
		}
		if e.Code != 0 {
			return nil
		}
		return a.take(e, began, now)
	}
}

// allowed reports whether an exit status is allowed: another process is working on the thread, the agent was
// stopped, or the thread was killed.
func (a *account) allowed(e ended) bool {
	switch e.Code {
	case 0, exitLocked:
		return true
	case exitAgent, exitStopped:
		return e.Args[1] == "step"
	case 1:
		return len(e.Args) > 2 && a.tried[e.Args[2]]
	}
	return false
}

// take records what a successful command reported about a thread.
func (a *account) take(e ended, began, now time.Time) error {
	if e.Args[0] != "thread" || len(e.Args) < 3 {
		return nil
	}
	id := e.Args[2]
	dead, isDead := a.ended[id]
	switch e.Args[1] {
	case "kill":
		if isDead {
			return fmt.Errorf("thread %s was killed twice: %s", id, e)
		}
		a.ended[id] = now
	case "step", "show":
		var said struct{ Head, StepHash string }
		if err := json.Unmarshal(e.Stdout, &said); err != nil {
			return fmt.Errorf("not JSON (%w): %s", err, e)
		}
		if isDead && dead.Before(began) && e.Args[1] == "step" {
			return fmt.Errorf("a step of thread %s after it was killed: %s", id, e)
		}
		a.events[id] = append(a.events[id], event{began, now, said.Head, said.StepHash != "" && e.Args[1] == "step"})
	}
	return nil
}

// killed reports whether a kill of a thread was acknowledged.
func (a *account) killed(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, killed := a.ended[id]
	return killed
}

// inOrder checks that the heads of a thread were seen and made in the order of its chain.
func (a *account) inOrder(id string, chain []string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.events[id]
	for _, later := range all {
		at := slices.Index(chain, later.head) // -1 for the start
		for _, before := range all {
			was := slices.Index(chain, before.head)
			if !before.ended.Before(later.began) || was < at || was == at && !later.made {
				continue
			}
			return fmt.Errorf("thread %s went back: its head was %s, and for a command that began later %s", id, before.head, later.head)
		}
	}
	return nil
}
