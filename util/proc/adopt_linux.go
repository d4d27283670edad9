package proc

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childPatience is how long KillChildren goes on against what starts others faster
// than it is killed. Such a one dies sooner or later, since each try may hit it
// before it has started the next.
const childPatience = 3 * time.Second

// Adopt makes this process the parent of what its children leave behind, instead of
// init, for good: whatever such a one has done to its environment, its group and its
// session, [Children] finds it. False: only Linux can do that.
func Adopt() bool {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
}

// Children are the ids of the processes whose parent is this one; among them those
// that have ended and were not waited for, whose ids nobody else gets until then.
func Children() []int {
	pids, err := processes()
	if err != nil {
		return nil
	}
	self := os.Getpid()
	return slices.DeleteFunc(pids, func(pid int) bool { return look(pid).parent != self })
}

// KillChildren kills all children of this process but some, and what becomes a child
// by that, until none is left. It waits for them, so nobody else must. It returns
// how many were still running; [ErrAlive] if some run on.
func KillChildren(but []int) (int, error) {
	killed := map[int]bool{}
	left := 0
	_, _ = waitUntil(context.Background(), childPatience, func() bool {
		left = 0
		for _, pid := range Children() {
			if slices.Contains(but, pid) {
				continue
			}
			left++
			if ended, _ := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); ended == pid {
				continue // its own children are ours from now on: look again
			}
			if err := syscall.Kill(pid, syscall.SIGKILL); err == nil {
				killed[pid] = true
			}
		}
		return left == 0
	})
	if left > 0 {
		return len(killed), errors.Join(ErrAlive, errors.New(strconv.Itoa(left)+" processes"))
	}
	return len(killed), nil
}
