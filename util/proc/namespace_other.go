//go:build !linux

package proc

import "os"

func startInit(c Command) (*Child, error) {
	c.Init = false
	return Start(c)
}

func reported(*os.File) (Status, bool) { return Status{}, false }
