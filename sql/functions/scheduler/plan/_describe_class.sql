-- odc._describe_class: what orders the jobs of one class, in the columns of class_facts. Inlined.
create or replace function odc._describe_class(p_classes odc.class_lists, p_class integer)
returns odc.class_facts
language sql immutable as $$
    select row(
        p_class, p_classes.shape_ids[p_class], p_classes.limits_s[p_class], p_classes.uids[p_class], p_classes.accounts[p_class],
        p_classes.qos_ids[p_class], p_classes.nices[p_class], p_classes.tiers[p_class], p_classes.orderings[p_class],
        p_classes.depths[p_class], p_classes.max_waits_s[p_class], p_classes.backfills[p_class], p_classes.sizes[p_class],
        p_classes.fairs[p_class], p_classes.statics[p_class], p_classes.age_weight, p_classes.max_age_s)::odc.class_facts
$$;
