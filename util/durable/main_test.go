package durable_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/prosetest"
)

// The test binary also plays the other process: childVar selects the part.
const childVar = "DURABLE_TEST_CHILD"

func TestMain(m *testing.M) {
	play, ok := children[os.Getenv(childVar)]
	if !ok {
		os.Exit(prosetest.Run(m))
	}
	if err := play(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var children = map[string]func(args []string) error{
	// count adds 1 to the number in a file, args[1] times, under a lock.
	"count": func(args []string) error {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		for range n {
			if err := addOne(args[0]); err != nil {
				return err
			}
		}
		return nil
	},
	// share nearly always holds a shared lock, until the file args[1] exists. It creates args[2] when it
	// starts.
	"share": func(args []string) error {
		for began := false; ; began = true {
			durable.YieldToExclusive(context.Background(), args[0])
			held, err := durable.LockShared(context.Background(), args[0])
			if err != nil {
				return err
			}
			if !began {
				if err := os.WriteFile(args[2], nil, 0o644); err != nil {
					return err
				}
			}
			time.Sleep(20 * time.Millisecond) // its work
			_, ended := os.Stat(args[1])
			if err := held.Unlock(); err != nil || ended == nil {
				return err
			}
		}
	},
	// hold keeps its inherited files until its standard input ends.
	"hold": func([]string) error {
		_, _ = os.Stdin.Read(make([]byte, 1))
		return nil
	},
	// leave leaves a child behind that would inherit descriptor 3, and exits.
	"leave": func(args []string) error {
		if !durable.KeepFromChildren(3, args[0]) || durable.KeepFromChildren(0, args[0]) {
			return errors.New("took another file for the lock")
		}
		c := child("hold")
		c.Stdin = os.Stdin
		return c.Start()
	},
	// fillup writes more than fits.
	"fillup": fillUp,
	// takeover takes over the lock of descriptor 3, and reports that.
	"takeover": func(args []string) error {
		held, err := durable.Inherited(os.NewFile(3, "lock"), args[0])
		if err != nil {
			return err
		}
		fmt.Println("taken")
		_, _ = os.Stdin.Read(make([]byte, 1))
		return held.Unlock()
	},
}

func addOne(path string) error {
	held, err := durable.Lock(context.Background(), path+".lock")
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return err
	}
	if err := durable.WriteFile(durable.OS(), path, []byte(strconv.Itoa(n+1)), 0o644); err != nil {
		return err
	}
	// Removing the file each time is the hard case, because waiters have it open.
	return held.RemoveAndUnlock()
}
