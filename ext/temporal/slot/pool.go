// Package slot makes steps of threads, each in a process of its own with a home of its own.
//
// A slot is one of the places of a worker in which a step is made. Its home is made again
// for each step, from the worker's configuration: nothing of one thread is left to the
// next. The nodes of all slots lie in one store, so that what one has brought from the
// remote the others need not bring again, and each slot keeps the git objects that it has
// brought; now and then all of that is started over, so that it does not grow for ever. It is a
// cache: what counts is at the remote.
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

// Config says how steps are made.
type Config struct {
	Exe     string // path of a program whose main calls [Work]
	Dir     string // of the slots; on a local disk
	Home    string // its config.yaml, .env and remotes.yaml are those of all slots
	Slots   int
	Environ []string // of processes in slots; where their home is comes on top
	// Queues are the task queues of roles: by the name of the workflow, then of the role.
	Queues map[string]map[string]string
	// Queue is where all other roles are played.
	Queue string
	// Lease is how long others wait for a thread if the process that steps it dies; 0: the
	// usual time.
	Lease time.Duration
	// Grace is how long a step that is stopped may take to end.
	Grace time.Duration
	Now   func() time.Time // required
	// Log is told what goes wrong, with what Temporal is not told; nil: nobody.
	Log func(string)
	// Made is told of each step that was made or has failed; nil: nobody.
	Made func(Made)
}

// Made is a step, as the worker logs it.
type Made struct {
	AtMs     int64             `json:"atMs"`
	Thread   string            `json:"thread"`
	Step     protocol.NullHash `json:"step,omitempty"`
	Role     string            `json:"role,omitempty"`
	Agent    string            `json:"agent,omitempty"`
	Status   protocol.Status   `json:"status,omitempty"` // of the thread
	Code     protocol.Code     `json:"code,omitempty"`   // of an error
	Machine  bool              `json:"machine,omitempty"`
	TookMs   int64             `json:"tookMs"`
	Usage    *protocol.Usage   `json:"usage,omitempty"`
	Workflow string            `json:"workflow,omitempty"`
}

// perStore is how many steps share a store of nodes.
const perStore = 5000

// Pool is the slots of one worker.
type Pool struct {
	c      Config
	health *Health
	dir    string        // of this worker
	lock   *durable.Held // of dir: it may be removed once nobody has it
	free   chan int

	mu    sync.Mutex
	store *store
	begun int // stores
	taken int // slots, ever
	// leaving are homes whose notices are being sent; closing ends the wait for them.
	leaving sync.WaitGroup
	closing chan struct{}
	// waiting are threads that wait for a person, the next to be looked at first.
	waiting []asked
}

// store is a directory of nodes that some steps share, and one of the objects of files.
type store struct {
	dir         string
	steps, uses int
	old         bool // no further step uses it
}

// Open makes the directory of a worker, and removes those of workers that have gone. A
// process in a slot that has outlived its worker keeps its directory until it ends.
func Open(ctx context.Context, c Config) (*Pool, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	opening, err := durable.Lock(ctx, filepath.Join(c.Dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = opening.Unlock() }()
	if err := sweep(c.Dir); err != nil {
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

// sweep removes the directories of workers that have gone.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), prefix) {
			continue
		}
		old := filepath.Join(dir, entry.Name())
		lock, err := durable.TryLock(filepath.Join(old, "lock"))
		if errors.Is(err, durable.ErrLocked) {
			continue
		}
		if err != nil {
			return err
		}
		if err := errors.Join(os.RemoveAll(old), lock.Unlock()); err != nil {
			return err
		}
	}
	return nil
}

// Health is that of the machine.
func (p *Pool) Health() *Health { return p.health }

// Close removes the worker's directory, unless a process is still at work in it. Notices get a
// while to be sent.
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
	return errors.Join(os.RemoveAll(p.dir), lock.Unlock())
}

// place is a slot that is in use.
type place struct {
	pool  *Pool
	n     int
	name  string // of the slot
	dir   string // home and work are in it
	store *store
	alive *durable.Held // of the home: to its store it is one that is there for a while only
}

// take waits for a free slot and makes its home.
func (p *Pool) take(ctx context.Context) (*place, error) {
	select {
	case n := <-p.free:
		// The home of the step before may still be there, until its notices are sent.
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

// number counts the slots that were taken.
func (p *Pool) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken++
	return p.taken
}

// furnish makes a home with the worker's configuration.
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

// imported are the git directories in a home that have the files of threads from elsewhere.
var imported = []string{"imported-sha1", "imported-sha256"}

// objects is where a slot keeps them between two steps. No two steps use them at once.
func (a *place) objects() string { return filepath.Join(a.store.objects(), a.name) }

// move moves them from one directory to another, if they are there.
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

// leave gives the slot back, empty.
func (a *place) leave() {
	a.clear()
	a.pool.giveBack(a.store)
	a.pool.free <- a.n
}

// clear removes what is in the slot.
func (a *place) clear() {
	if a.alive != nil {
		_ = a.alive.Unlock() // the file goes as well
	}
	_ = move(filepath.Join(a.home(), "git"), a.objects()) // else they are brought again
	if !a.sending() {
		_ = os.RemoveAll(a.dir) // furnish says what is wrong
		return
	}
	a.pool.leaving.Go(func() {
		a.sent()
		_ = os.RemoveAll(a.dir)
	})
}

// sending reports whether a process that the step has started sends a notice from the home.
func (a *place) sending() bool {
	waiting, err := os.ReadDir(filepath.Join(a.home(), "notify", "outbox"))
	return err == nil && len(waiting) > 0
}

// sent waits until the notices are sent: that takes longer than the sender tries. It gives up when the pool
// is closed.
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

// borrow returns the store for a step.
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

// retire removes a store once nobody uses it.
func (p *Pool) retire(s *store) {
	if s.old = true; s.uses == 0 {
		_, _ = os.RemoveAll(s.dir), os.RemoveAll(s.objects()) // otherwise Close does, or the next worker
	}
}

// objects is where the slots keep the objects of files meanwhile.
func (s *store) objects() string { return s.dir + "-files" }
