package agentproc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/runfiles"
)

// maxPrinted is how much a plain program may print before it is stopped: nothing else
// would keep one that prints for ever from filling the disk until its time is up.
const maxPrinted = 512 << 20

// FloodError means that a plain program has printed more than it may, and was stopped.
type FloodError struct{ Most int64 }

// Error implements error.
func (e *FloodError) Error() string {
	return fmt.Sprintf("the command was stopped: it has printed more than %d MiB", e.Most>>20)
}

// watchPlain looks at what a plain program prints, until ended is closed, and shows its
// last line. What is written between two looks may be too much by that.
func (inv Invocation) watchPlain(ended <-chan struct{}, stop context.CancelCauseFunc) {
	most := inv.MaxPrinted
	if most == 0 {
		most = maxPrinted
	}
	var seen int64
	pause := minPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-ended:
			return
		case <-timer.C:
		}
		var size int64
		for _, name := range []string{runfiles.OutputFile, runfiles.StderrFile} {
			if info, err := os.Lstat(filepath.Join(inv.RunDir, name)); err == nil {
				size += info.Size()
			}
		}
		if size > most {
			stop(&FloodError{Most: most})
			return
		}
		if size != seen && inv.Printed != nil {
			inv.Printed(LastPrinted(inv.RunDir))
		}
		seen, pause = size, min(2*pause, maxPause)
		timer.Reset(pause)
	}
}

// LastPrinted is the last line that a plain program has printed, cleaned: beside data,
// what it says on stderr.
func LastPrinted(runDir string) string {
	for _, name := range []string{runfiles.StderrFile, runfiles.OutputFile} {
		if text := Tail(filepath.Join(runDir, name)); text != "" {
			return text[strings.LastIndexByte(text, '\n')+1:]
		}
	}
	return ""
}
