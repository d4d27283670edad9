// Package slot makes steps of threads, each in its own process with its own home.
//
// A worker has a fixed number of slots, in each of which one step at a time is made. The home of a slot is
// created again for each step from the worker's configuration, so nothing of one thread is left for the next.
// All slots share a node store, so that nodes are fetched from the remote only once, and each slot keeps its
// fetched git objects. Both are only a cache of the remote, and are replaced regularly, so that they don't
// grow forever.
package slot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Config configures a pool.
type Config struct {
	Exe     string // path of a program whose main calls [Work]
	Dir     string // directory of the slots, on a local disk
	Home    string // home whose config.yaml, .env and remotes.yaml all slots use
	Slots   int
	Environ []string // environment of processes in slots, without the location of their home
	// Queues maps workflow names and roles to task queues.
	Queues map[string]map[string]string
	// Queue is the task queue of all other roles.
	Queue string
	// Lease is the duration of leases, for which others wait if a stepping process dies; 0 means the default.
	Lease time.Duration
	// Grace is the time that a stopped step has to end.
	Grace time.Duration
	Now   func() time.Time // required
	// Log, if not nil, logs errors, with details that Temporal doesn't get.
	Log func(string)
	// Made, if not nil, is called for each step that was made or has failed.
	Made func(Made)
}

// Made is a step as the worker logs it.
type Made struct {
	AtMs     int64             `json:"atMs"`
	Thread   string            `json:"thread"`
	Step     protocol.NullHash `json:"step,omitempty"`
	Role     string            `json:"role,omitempty"`
	Agent    string            `json:"agent,omitempty"`
	Status   protocol.Status   `json:"status,omitempty"` // status of the thread
	Code     protocol.Code     `json:"code,omitempty"`   // error code
	Machine  bool              `json:"machine,omitempty"`
	TookMs   int64             `json:"tookMs"`
	Usage    *protocol.Usage   `json:"usage,omitempty"`
	Workflow string            `json:"workflow,omitempty"`
}

// perStore is the number of steps that share a node store.
const perStore = 5000

// Pool manages the slots of one worker.
type Pool struct {
	c      Config
	health *Health
	dir    string        // directory of this worker
	lock   *durable.Held // lock of dir, which can be removed once the lock is free
	free   chan int

	mu    sync.Mutex
	store *store
	begun int // number of stores created
	taken int // number of slots taken so far
	// leaving counts the homes whose notifications are being sent; closing ends the wait for them.
	leaving sync.WaitGroup
	closing chan struct{}
	// waiting holds the threads that wait for a person, in the order in which they are checked.
	waiting []asked
}

// store is a directory with the nodes that some steps share, and one with file objects.
type store struct {
	dir         string
	steps, uses int
	old         bool // it is not used for further steps
}

// Open creates the directory of a worker, and removes those of workers that have ended. A process in a slot
// that outlives its worker keeps its directory until it ends.
func Open(ctx context.Context, c Config) (*Pool, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	opening, err := durable.Lock(ctx, filepath.Join(c.Dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = opening.Unlock() }()
	if err := c.sweep(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(c.Dir, prefix)
	if err != nil {
		return nil, err
	}
	lock, err := durable.TryLock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	p := &Pool{
		c: c, health: newHealth(c.Now), dir: dir, lock: lock, free: make(chan int, c.Slots), closing: make(chan struct{}),
	}
	for i := range c.Slots {
		p.free <- i
	}
	return p, nil
}

const prefix = "worker-"

// sweep removes the directories of workers that have ended. It logs those that cannot be removed, for example because of
// files that an agent's container has made as another user.
func (c Config) sweep() error {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), prefix) {
			continue
		}
		old := filepath.Join(c.Dir, entry.Name())
		lock, err := durable.TryLock(filepath.Join(old, "lock"))
		if errors.Is(err, durable.ErrLocked) {
			continue
		}
		if err == nil {
			err = errors.Join(safeopen.RemoveAll(old), lock.Unlock())
		}
		if err != nil && c.Log != nil {
			c.Log("cannot remove the directory of an ended worker: " + err.Error())
		}
	}
	return nil
}

// Health returns the health of the machine.
func (p *Pool) Health() *Health { return p.health }

// Close removes the worker's directory, unless a process is still working in it. It waits a while for
// notifications to be sent.
func (p *Pool) Close() error {
	const patience = 15 * time.Second
	defer time.AfterFunc(patience, func() { close(p.closing) }).Stop()
	p.leaving.Wait()
	if err := p.lock.Unlock(); err != nil {
		return err
	}
	lock, err := durable.TryLock(filepath.Join(p.dir, "lock"))
	if errors.Is(err, durable.ErrLocked) {
		return nil // the next worker removes it
	}
	if err != nil {
		return err
	}
	return errors.Join(safeopen.RemoveAll(p.dir), lock.Unlock())
}

// place is a slot in use.
type place struct {
	pool  *Pool
	n     int
	name  string // name of the slot
	dir   string // contains home and work
	store *store
	alive *durable.Held // marks the home as temporary for its store
}

// take waits for a free slot and creates its home.
func (p *Pool) take(ctx context.Context) (*place, error) {
	select {
	case n := <-p.free:
		// The previous step's home may still exist until its notifications are sent, so use a new name.
		at := &place{pool: p, n: n, name: "slot-" + strconv.Itoa(n), dir: filepath.Join(p.dir, fmt.Sprintf("slot-%d-%d", n,
			p.number())), store: p.borrow()}
		if err := at.furnish(); err != nil {
			at.leave()
			return nil, err
		}
		return at, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// number counts and returns the number of slots taken.
func (p *Pool) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken++
	return p.taken
}

// furnish creates a home with the worker's configuration.
func (a *place) furnish() (err error) {
	if err := os.RemoveAll(a.dir); err != nil {
		return err
	}
	for _, dir := range []string{a.home(), a.workDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	if err := move(a.objects(), filepath.Join(a.home(), "git")); err != nil {
		return err
	}
	const lockName = "ephemeral.lock" // see package fsstore
	if a.alive, err = durable.LockShared(context.Background(), filepath.Join(a.home(), lockName)); err != nil {
		return err
	}
	const most = 1 << 20
	for _, name := range []string{"config.yaml", ".env", "remotes.yaml"} {
		text, err := safeopen.ReadFile(filepath.Join(a.pool.c.Home, name), most, safeopen.Follow)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(a.home(), name), text, 0o600)
		}
		if err != nil {
			return fmt.Errorf("home of the worker: %w", err)
		}
	}
	return nil
}

// imported lists the git directories in a home with the files of imported threads.
var imported = []string{"imported-sha1", "imported-sha256"}

// objects returns the directory in which a slot keeps them between two steps. No two steps use it at the same
// time.
func (a *place) objects() string { return filepath.Join(a.store.objects(), a.name) }

// move moves them from one directory to another, if they exist.
func move(from, to string) error {
	for _, name := range imported {
		if _, err := os.Lstat(filepath.Join(from, name)); err != nil {
			continue
		}
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

func (a *place) home() string    { return filepath.Join(a.dir, "home") }
func (a *place) workDir() string { return filepath.Join(a.dir, "work") }

// leave empties the slot and returns it.
func (a *place) leave() {
	a.clear()
	a.pool.giveBack(a.store)
	a.pool.free <- a.n
}

// clear removes the contents of the slot.
func (a *place) clear() {
	if a.alive != nil {
		_ = a.alive.Unlock() // the file is removed as well
	}
	_ = move(filepath.Join(a.home(), "git"), a.objects()) // on failure, they are fetched again
	if !a.sending() {
		_ = safeopen.RemoveAll(a.dir) // the sweep of the next worker reports the error
		return
	}
	a.pool.leaving.Go(func() {
		a.sent()
		_ = safeopen.RemoveAll(a.dir)
	})
}

// sending reports whether a process started by the step is sending a notification from the home.
func (a *place) sending() bool {
	waiting, err := os.ReadDir(filepath.Join(a.home(), "notify", "outbox"))
	return err == nil && len(waiting) > 0
}

// sent waits until the notifications are sent, longer than the sender tries, or until the pool is closed.
func (a *place) sent() {
	const longest = 15 * time.Minute
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(longest); a.sending(); {
		select {
		case <-tick.C:
		case <-end:
			return
		case <-a.pool.closing:
			return
		}
	}
}

// borrow returns a store for a step.
func (p *Pool) borrow() *store {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store == nil || p.store.steps >= perStore {
		if p.store != nil {
			p.retire(p.store)
		}
		p.begun++
		p.store = &store{dir: filepath.Join(p.dir, "nodes-"+strconv.Itoa(p.begun))}
	}
	p.store.steps++
	p.store.uses++
	return p.store
}

func (p *Pool) giveBack(s *store) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.uses--; s.old {
		p.retire(s)
	}
}

// retire removes a store when it is no longer in use.
func (p *Pool) retire(s *store) {
	if s.old = true; s.uses == 0 {
		_, _ = os.RemoveAll(s.dir), os.RemoveAll(s.objects()) // on failure, Close or the next worker removes it
	}
}

// objects returns the directory in which the slots keep file objects between steps.
func (s *store) objects() string { return s.dir + "-files" }
