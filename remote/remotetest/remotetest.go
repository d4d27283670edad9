// Package remotetest is a test suite for remotes: implementations of [remote.Remote], or helper programs.
package remotetest

import (
	"testing"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
)

// Open opens another connection to a remote. The test closes it.
type Open func(t testing.TB) remote.Remote

// Run runs the suite. place creates an empty remote with a hash function, and returns a function that opens
// connections to it; each must see the changes of the others. The tests run in parallel, and wait for leases
// of one second.
func Run(t *testing.T, place func(t *testing.T, a cas.Algorithm) Open) {
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			run(t, place, a)
		})
	}
}

// Upkeep changes a remote as its owner does.
type Upkeep struct {
	Remove func(thread string) error // removes a thread that has ended
	Redact func(thread string, h cas.Hash, reason string) error
}

// RunUpkeep runs the tests of what owners do. place is as in [Run].
func RunUpkeep(t *testing.T, place func(t *testing.T, a cas.Algorithm) (Open, Upkeep)) {
	for name, test := range map[string]func(*testing.T, world, Upkeep){
		"a removed thread stays removed": removals,
		"redactions are listed":          redactionList,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open, upkeep := place(t, cas.XXH3)
			test(t, newWorld(t, cas.XXH3, open), upkeep)
		})
	}
}

func newWorld(t *testing.T, a cas.Algorithm, open Open) world {
	w := world{a: a, open: func() remote.Remote {
		r := open(t)
		t.Cleanup(func() { _ = r.Close() })
		return r
	}}
	w.Remote = w.open()
	return w
}

func run(t *testing.T, place func(t *testing.T, a cas.Algorithm) Open, a cas.Algorithm) {
	for name, test := range map[string]func(*testing.T, world){
		"nodes go there and come back":          nodes,
		"what is there stays":                   stays,
		"a redaction is not undone":             redactions,
		"wrong nodes are refused":               wrongNodes,
		"a walk lists what is needed first":     walks,
		"a head moves by compare and swap":      swaps,
		"a thread ends and goes on":             ends,
		"a head names what is there":            hollow,
		"facts":                                 facts,
		"lists":                                 lists,
		"what is refused":                       refusals,
		"one of many wins":                      races,
		"one of many gets the lease":            leaseRaces,
		"a lease keeps others away":             leases,
		"a lease that has ended loses the swap": fences,
		"names":                                 names,
		"files":                                 objects,
		"a context that has ended":              canceled,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, a, place(t, a)))
		})
	}
}

// world is an empty remote to test.
type world struct {
	remote.Remote
	a    cas.Algorithm
	open func() remote.Remote
}
