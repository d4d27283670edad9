package doctor

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/protocol"
)

// store looks at the node store: what it is, and how it flushes. Whether every
// node is whole is fsck's to say, since that takes time.
func (x *examination) store(ctx context.Context) {
	dir := x.Dirs.Store
	s, err := fsstore.Open(ctx, dir, fsstore.Options{Home: x.Dirs.Home})
	if err != nil {
		remedy := "uwf cas fsck --repair"
		if errors.Is(err, &protocol.Error{Code: protocol.CodeUnsupportedVersion}) {
			remedy = "install the uwf that wrote it: its newer release reads and writes it"
		}
		x.problem("store", remedy, "%v", err)
		return
	}
	if !s.Exists() {
		x.note("store", "", "%s does not exist yet; the first thread makes it", dir)
		return
	}
	if err := writable(filepath.Clean(dir)); err != nil {
		x.problem("store", writeRemedy(err, dir, "OCAS_HOME"), "nothing can be written in %s: %v", dir, err)
		return
	}
	kind := string(s.Algorithm())
	if s.Originals() {
		kind += ", the original's layout"
	}
	mode, why := s.FlushMode()
	x.ok("store", "%s (%s), flushed in %s mode: %s", dir, kind, mode, why)
	if mode == "none" {
		x.warn("store", `set "flush":"auto" in `+filepath.Join(dir, "format.json"), "nothing is flushed: a power cut can lose finished steps")
	}
}
