package fileheads

import (
	"bytes"
	"context"
	"fmt"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// astray puts threads in doubt of which nothing says that they were imported, while
// something says it of a thread that is nowhere and whose id is nearly theirs: a
// damaged id in threads.yaml is an id anyway. only: a thread, "" for all.
func (x *Heads) astray(ctx context.Context, r *factsRead, only string) {
	imported := map[string]bool{}
	for line := range bytes.Lines(r.data) {
		id, named := bytes.CutPrefix(line, []byte(begin))
		if named && len(id) > threadid.Len && bytes.Contains(id, []byte(`,"imported":{`)) && (only == "" || threadid.Near(only, string(id[:threadid.Len]))) {
			imported[string(id[:threadid.Len])] = true
		}
	}
	if len(imported) == 0 {
		return
	}
	standing := x.names(ctx)
	asked := standing
	if only != "" {
		asked = map[string]bool{only: true}
	}
	for id := range imported {
		if standing[id] {
			continue
		}
		for thread := range asked {
			if threadid.Near(id, thread) && r.known[thread]["imported"] == nil {
				why := &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf(
					"%s knows an imported thread %s, which is nowhere: the id of %s is nearly that one, and may be damaged in %s", x.path(factsFile), id, thread, x.path(threadsFile))}
				r.doubts[thread] = why
				r.faults = append(r.faults, why)
			}
		}
	}
}
