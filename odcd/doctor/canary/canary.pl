use strict; use IO::Socket::INET; use Sys::Hostname; use Time::HiRes qw(time sleep);
my $port = $ENV{ODC_CANARY_PORT} || 8471;
sub serve {
    my $server = IO::Socket::INET->new(LocalPort => $port, Listen => 64, ReuseAddr => 1) or die "$!";
    $| = 1; print "odc: listening\n";
    while (1) { my $one = $server->accept(); close $one if $one; }
}
sub reach {
    my ($host, $at, $until) = @_;
    while (1) {
        return 1 if IO::Socket::INET->new(PeerAddr => $host, PeerPort => $at, Proto => "tcp", Timeout => 2);
        return 0 if time > $until;
        sleep 0.2;
    }
}
my ($what, $window, $patience, @targets) = @ARGV;
my $rank = exists $ENV{ODC_CANARY_RANK} ? $ENV{ODC_CANARY_RANK} : substr(hostname(), -1);
serve() if $what eq "listen" or $rank ne "0";
my ($begun, %child, @reached) = (time);
for my $one (@targets) {
    my ($name, $host, $at, $kind) = split /=/, $one;
    my $pid = fork;
    if ($pid == 0) { exit(reach($host, $at, $begun + ($kind eq "open" ? $patience : $window)) ? 0 : 1); }
    $child{$pid} = $name;
}
while ((my $pid = wait) > 0) { push @reached, $child{$pid} if $? == 0; }
open(my $file, ">", $ENV{ODC_CANARY_MESSAGE} || "/dev/termination-log") or die "$!";
print $file join("\n", "odc: probed", sort @reached);
