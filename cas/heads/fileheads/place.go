package fileheads

import (
	"context"
	"fmt"
	"strings"
)

// ThreadPlace is the line that says where a thread stands, as file:line; "" if there
// is none. It is for messages: a hash that leads nowhere is to be fixed there.
func (x *Heads) ThreadPlace(ctx context.Context, thread string) string {
	if places := x.places(ctx, threadsFile, thread); len(places) > 0 {
		return places[0]
	}
	if places := x.places(ctx, historyFile, thread); len(places) > 0 {
		return places[len(places)-1] // the last line counts
	}
	return ""
}

// WorkflowPlace is [Heads.ThreadPlace] for a name in the registry.
func (x *Heads) WorkflowPlace(ctx context.Context, name string) string {
	if places := x.places(ctx, registryFile, name); len(places) > 0 {
		return places[0]
	}
	return ""
}

// places are the lines of a file that mention a key.
func (x *Heads) places(ctx context.Context, file, key string) (found []string) {
	data, err := x.readLog(file)
	if err != nil || ctx.Err() != nil {
		return nil
	}
	number := 0
	for line := range strings.Lines(string(data)) {
		if number++; mentions(line, key) {
			found = append(found, fmt.Sprintf("%s:%d", x.path(file), number))
		}
	}
	return found
}
