// Package fsstore keeps nodes in files: <dir>/nodes/<first two>/<hash>.bin.
package fsstore

import (
	"context"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/durable"
)

// Options for a store. The zero value works.
type Options struct {
	FS    durable.FS    // nil: the real disk
	Home  string        // the directory of the heads; batch flushing needs it on the same file system
	Flush string        // full, batch, none or auto; "" : as format.json says
	Hash  cas.Algorithm // for a store that does not exist yet; "": xxh3
}

// Store implements cas.Store.
type Store struct{ cas.Store }

// Open opens the store at dir. A store that does not exist yet is made by the first write.
func Open(ctx context.Context, dir string, o Options) (*Store, error) { panic("unwritten") }

// FlushMode is the mode in force: full, batch or none, and why.
func (s *Store) FlushMode() (mode, why string) { panic("unwritten") }
