package bundles

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/secret"
)

// watched is a store whose nodes are looked at for keys as they leave the machine.
type watched struct {
	cas.Store
	looks secret.Looks
	mu    sync.Mutex
	found map[cas.Hash]string
}

func watch(s cas.Store) *watched {
	return &watched{Store: s, looks: secret.NewLooks(), found: map[cas.Hash]string{}}
}

// Get implements [cas.Getter].
func (w *watched) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	n, err := w.Store.Get(ctx, h)
	if err == nil {
		if key := w.looks.In(n.Payload); key != "" {
			w.mu.Lock()
			w.found[h] = key
			w.mu.Unlock()
		}
	}
	return n, err
}

// warnOfKeys names nodes that seem to hold a key.
func (a Commands) warnOfKeys(w *watched, thread string) {
	hashes := slices.Sorted(maps.Keys(w.found))
	if len(hashes) == 0 {
		return
	}
	const most = 5
	list := ""
	for _, h := range hashes[:min(len(hashes), most)] {
		list += fmt.Sprintf("\n  %s  %s", h, plaintext.Line(w.found[h]))
	}
	if more := len(hashes) - most; more > 0 {
		list += fmt.Sprintf("\n  and %d more", more)
	}
	a.Say("uwf: warning: what was exported seems to hold a key, in %s:%s", render.Count(len(hashes), "node"), list)
	a.Hint("to remove the content of a node: uwf thread redact %s --node %s --shared", thread, hashes[0])
	a.Hint("a thread's newest output stays until its step is undone: uwf thread undo %s", thread)
}
