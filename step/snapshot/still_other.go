//go:build !linux

package snapshot

import (
	"context"
	"time"
)

// still isn't supported: git looks at the files.
func still([]string, Spec, []string, time.Time) (string, map[string]bool, bool) {
	return "", nil, false
}

func distrust(Spec) error { return nil }

func fileTime(string) time.Time { return time.Time{} }

func (n *indexNote) stands(context.Context, git, Spec, indexNote, time.Time) {}
