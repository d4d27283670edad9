// Command uwf-mock is an agent that plays a script instead of asking a model.
package main

import "github.com/united-workforce/uwf/utilagent/mock"

func main() { mock.Run() }
