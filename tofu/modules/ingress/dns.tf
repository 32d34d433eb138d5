resource "aws_acm_certificate" "this" {
  count             = var.certificate_arn == null ? 1 : 0
  domain_name       = var.host
  validation_method = "DNS"
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_route53_record" "proof" {
  for_each        = var.certificate_arn == null && var.zone_id != null ? toset([var.host]) : toset([])
  zone_id         = var.zone_id
  name            = one([for option in aws_acm_certificate.this[0].domain_validation_options : option.resource_record_name if option.domain_name == each.key])
  type            = one([for option in aws_acm_certificate.this[0].domain_validation_options : option.resource_record_type if option.domain_name == each.key])
  records         = [one([for option in aws_acm_certificate.this[0].domain_validation_options : option.resource_record_value if option.domain_name == each.key])]
  ttl             = 300
  allow_overwrite = true
}

resource "aws_acm_certificate_validation" "this" {
  count                   = var.certificate_arn == null ? 1 : 0
  certificate_arn         = aws_acm_certificate.this[0].arn
  validation_record_fqdns = [for record in aws_route53_record.proof : record.fqdn]
}

resource "aws_route53_record" "host" {
  count   = var.zone_id == null ? 0 : 1
  zone_id = var.zone_id
  name    = var.host
  type    = "A"
  alias {
    name                   = aws_lb.this.dns_name
    zone_id                = aws_lb.this.zone_id
    evaluate_target_health = false
  }
}
