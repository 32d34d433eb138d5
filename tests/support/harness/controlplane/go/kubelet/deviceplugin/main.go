// A device plugin without devices, for tests: device-plugin FOLDER RESOURCE=COUNT...
//
// It registers with the kubelet of its machine, and again whenever that restarts. The file
// FOLDER/unhealthy has the ids of devices that are broken now, such as gpu-3, one per line.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const pause = 200 * time.Millisecond

type plugin struct {
	api.UnimplementedDevicePluginServer
	resource string
	count    int
	broken   string
}

func (p *plugin) kind() string { return filepath.Base(p.resource) }

func (p *plugin) devices() []*api.Device {
	text, _ := os.ReadFile(p.broken)
	broken := map[string]bool{}
	for _, id := range strings.Fields(string(text)) {
		broken[id] = true
	}
	devices := make([]*api.Device, p.count)
	for number := range devices {
		id := fmt.Sprintf("%s-%d", p.kind(), number)
		health := api.Healthy
		if broken[id] {
			health = api.Unhealthy
		}
		devices[number] = &api.Device{ID: id, Health: health}
	}
	return devices
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	sent := ""
	for {
		devices := p.devices()
		if now := fmt.Sprint(devices); now != sent {
			if err := stream.Send(&api.ListAndWatchResponse{Devices: devices}); err != nil {
				return err
			}
			sent = now
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, one := range request.ContainerRequests {
		envs := map[string]string{}
		if p.kind() == "gpu" {
			envs["NVIDIA_VISIBLE_DEVICES"] = strings.Join(one.DevicesIds, ",")
		}
		answer.ContainerResponses = append(answer.ContainerResponses, &api.ContainerAllocateResponse{Envs: envs})
	}
	return answer, nil
}

// serve returns when the kubelet has restarted: it then expects new sockets and registrations.
func (p *plugin) serve() error {
	kubelet, err := os.Stat(api.KubeletSocket)
	if err != nil {
		return err
	}
	name := "test-" + p.kind() + ".sock"
	path := api.DevicePluginPath + name
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	defer server.Stop()
	api.RegisterDevicePluginServer(server, p)
	go server.Serve(listener)
	if err := p.register(name); err != nil {
		return err
	}
	log.Printf("%s is registered", p.resource)
	for {
		time.Sleep(pause)
		now, err := os.Stat(api.KubeletSocket)
		if err != nil || !os.SameFile(kubelet, now) {
			return fmt.Errorf("kubelet restarts")
		}
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("kubelet removed the socket")
		}
	}
}

func (p *plugin) register(name string) error {
	connection, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	within, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	_, err = api.NewRegistrationClient(connection).Register(within, &api.RegisterRequest{
		Version: api.Version, Endpoint: name, ResourceName: p.resource,
	})
	return err
}

func main() {
	for _, given := range os.Args[2:] {
		resource, count, _ := strings.Cut(given, "=")
		number, err := strconv.Atoi(count)
		if err != nil {
			log.Fatalf("%q is not RESOURCE=COUNT", given)
		}
		one := &plugin{resource: resource, count: number, broken: filepath.Join(os.Args[1], "unhealthy")}
		go func() {
			for {
				log.Printf("%s: %v", one.resource, one.serve())
				time.Sleep(pause)
			}
		}()
	}
	select {}
}
