// Command uwf-box holds back a program that uwf starts.
package main

import (
	"os"

	"github.com/united-workforce/uwf/utilagent/box/inside"
)

func main() { os.Exit(inside.Main(os.Stderr)) }
